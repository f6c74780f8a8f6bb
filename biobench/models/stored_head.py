"""The head that a checkpoint brings: its labels, and which of a task's outputs they stand for.

Two layouts are read: a classification model of the library, which names its labels in its config,
and an encoder with `head.safetensors`, as `--keep-model` writes it. Loads no torch.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import ValidationError

from biobench.core.checkpoint_safety import read_mapping
from biobench.errors import ModelError, UsageError
from biobench.models.loading import Checkpoint
from biobench.schema.training import Head

HEAD_FILE = "head.safetensors"
HEAD_ABOUT = "biobench_head.json"
"""What is written with an encoder whose head the model library has no place for."""
_CLASSIFIERS: dict[str, Literal["token", "sequence"]] = {
    "ForTokenClassification": "token",
    "ForSequenceClassification": "sequence",
}
"""End of a library class's name to what it classifies."""
_LETTERS = {"B": "B-", "U": "B-", "S": "B-", "I": "I-", "E": "I-", "L": "I-"}
"""Prefix of a tag, in IOB or in IOBES and BILOU, to that of IOB2."""


@dataclass(frozen=True, slots=True)
class StoredHead:
    """A checkpoint's head.

    kind: as `head.kind` of a spec. labels: what its outputs mean. type, options: of the task that
    it was fine-tuned on here, and its `head` there; None for a classification model of the library.
    several: whether it decides each label by itself; None where the config does not say.
    """

    kind: Literal["token", "sequence", "span"]
    labels: tuple[str, ...]
    type: str | None = None
    options: Head | None = None
    several: bool | None = None

    @property
    def names(self) -> set[str]:
        """What a map may call its labels: by themselves, and without the prefix of a tag."""
        names = set(self.labels)
        for label in self.labels:
            _, entity = _parted(label)
            names.add(entity)
        return names - {""}

    def matched(
        self, outputs: Sequence[str], names: Mapping[str, str] | None = None
    ) -> dict[str, str]:
        """Label to the output of a task that it stands for; labels that stand for none are absent.

        Equal names come first, then names that differ by case or by the prefix of a tag, then what
        `names` says: a label, with or without its prefix, to a label or tag of the task. Raises
        UsageError where both say something else.
        """
        names = names or {}
        matched: dict[str, str] = {}
        for label in self.labels:
            prefix = ""
            entity = label
            if self.kind == "token":
                prefix, entity = _parted(label)
            by_name = _find([label, prefix + entity], outputs)
            by_map: str | None = None
            target = names.get(label, names.get(entity))
            if target is not None:
                by_map = _find([target, prefix + target], outputs)
            if by_name is not None and by_map not in (None, by_name):
                raise UsageError(
                    f"--label-map gives '{label}' to '{target}', but the task has '{by_name}'",
                    hint="leave it out of the map: equal names stand for each other",
                )
            output = by_name or by_map
            if output is not None:
                matched[label] = output
        return matched


def _parted(label: str) -> tuple[str, str]:
    """A tag's prefix in IOB2 and its entity; a label without a prefix goes on with a mention."""
    letter, dash, entity = label.partition("-")
    if letter in _LETTERS and (entity or not dash):
        return _LETTERS[letter], entity
    return "I-", label


def _find(spellings: Iterable[str], outputs: Sequence[str]) -> str | None:
    """The output that the first possible spelling names: letter by letter, else whatever its case,
    unless several do.
    """
    for spelling in spellings:
        if spelling in outputs:
            return spelling
        same_letters = [name for name in outputs if name.casefold() == spelling.casefold()]
        if len(same_letters) == 1:
            return same_letters[0]
    return None


def stored_head(checkpoint: Checkpoint) -> StoredHead:
    """What a checkpoint says of its head. Raises ModelError where it has none."""
    if (checkpoint.folder / HEAD_ABOUT).is_file() or (checkpoint.folder / HEAD_FILE).is_file():
        return _kept_head(checkpoint)
    config = checkpoint.config
    architectures = getattr(config, "architectures", None) or ["nothing"]
    architecture = str(architectures[0])
    for ending, kind in _CLASSIFIERS.items():
        if architecture.endswith(ending):
            labels = tuple(str(config.id2label[index]) for index in sorted(config.id2label))
            return StoredHead(kind, labels, several=_several(config))
    raise ModelError(
        f"{checkpoint.id} has no classification head: its config names {architecture}",
        hint="leave --track ready out to fine-tune it",
        file=checkpoint.folder / "config.json",
    )


def _several(config: Any) -> bool | None:
    """Whether a head decides each label by itself; None where its config does not say."""
    problem = getattr(config, "problem_type", None)
    if problem is None:
        return None
    return bool(problem == "multi_label_classification")


def _kept_head(checkpoint: Checkpoint) -> StoredHead:
    """The head of a folder that `--keep-model` wrote."""
    path = checkpoint.folder / HEAD_ABOUT
    try:
        about = read_mapping(path, "head's description")
        options = Head.model_validate(about["head"])
        labels = tuple(str(label) for label in about["outputs"])
        return StoredHead(options.kind, labels, str(about["kind"]), options)
    except (KeyError, TypeError, ValidationError) as error:
        raise ModelError(
            f"does not describe the head in {HEAD_FILE}",
            hint="give the whole folder that --keep-model wrote",
            file=path,
        ) from error
