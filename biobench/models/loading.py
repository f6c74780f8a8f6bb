"""Finding a checkpoint, naming what it is, and loading its tokenizer.

A model is a local folder, a hub id, ``id@revision``, or `dummy`. Its identity is the content of its
weights, config and tokenizer files, so a copied or moved folder is the same model and a changed one
never is.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from biobench.core.checkpoint_safety import check_folder, check_pickle
from biobench.core.configs import forget_attention, position_limit
from biobench.core.hub import client_errors, explain, patiently
from biobench.core.layouts import check_may_be_on_hub, layout_hint
from biobench.core.text import first_line
from biobench.errors import ModelError
from biobench.models.dummy import NAME as DUMMY
from biobench.models.dummy import dummy_folder
from biobench.schema.checkpoint import Stamp, content_hash, model_folder, stamp
from biobench.schema.record import ModelIdentity

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

    from biobench.core.tokenizer import ReadTokenizer

CARD = "README.md"
_DASHES = "---"
_CARD_BYTES = 64 * 2**10
_LICENCE_LINE = 200
"""Around the front matter of a card; how many bytes of the card are read, and how many characters
the line with the licence has at most.
"""
_IDENTIFIER = re.compile(r"[A-Za-z0-9][A-Za-z0-9.+-]{0,63}")
_CLASS = re.compile(r"[A-Za-z_][\w.-]{0,199}", re.ASCII)
_NO_LIMIT = 1_000_000
"""Tokenizers without a declared limit report a huge sentinel; anything beyond this is one."""


class Reading(NamedTuple):
    """How the engine reads a checkpoint's folder.

    tokenizer: the file or the class that makes the tokens. notes: what a user must know of it, a
    line each. changes: what the engine reads otherwise than transformers by itself; they enter the
    keys of runs.
    """

    tokenizer: str | None = None
    notes: tuple[str, ...] = ()
    changes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint on disk."""

    id: str
    revision: str | None
    folder: Path
    hash: str
    config: Any
    trust_remote_code: bool = False
    stamp: Stamp = ()
    """What its files looked like when they were hashed."""
    saved_attention: str | None = None
    """The kernel of attention that its config names, which the engine does not use."""

    @cached_property
    def reading(self) -> Reading | None:
        """How its tokenizer, buffers and attention are read; None where the tokenizer cannot be
        loaded, which each run says.
        """
        try:
            read = _read_tokenizer(self.folder, self.hash, self.trust_remote_code)
        except ModelError:
            return None
        notes = read.notes
        changes = read.changes
        if self._code_has("persistent=False"):
            changes += ("buffers",)
        if self.saved_attention is not None:
            notes += (
                f"the attention that config.json names, {self.saved_attention}, is not used: the "
                "engine brings its own",
            )
        return Reading(read.maker, notes, changes)

    @cached_property
    def takes_global_attention(self) -> bool:
        """Whether tokens can be named that see the whole text (Longformer), as the config or the
        checkpoint's own code says.
        """
        return self.config.model_type == "longformer" or self._code_has("global_attention_mask")

    def _code_has(self, words: str) -> bool:
        """Whether the checkpoint's own code is run and holds these words; code that lies elsewhere
        may.
        """
        if not self.trust_remote_code:
            return False
        if "--" in str(getattr(self.config, "auto_map", "")):
            return True
        files = self.folder.glob("*.py")
        return any(words in path.read_text("utf-8", errors="replace") for path in files)

    @cached_property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Of the weights in its safetensors files, heads included, from their headers; empty where
        none can be read.
        """
        from safetensors import SafetensorError, safe_open

        shapes: dict[str, tuple[int, ...]] = {}
        for path in self.folder.glob("*.safetensors"):
            try:
                with safe_open(path, framework="numpy") as weights:
                    for name in weights.keys():  # noqa: SIM118
                        shapes[name] = tuple(weights.get_slice(name).get_shape())
            except (OSError, SafetensorError):
                return {}
        return shapes

    @property
    def parameters(self) -> int | None:
        """How many weights these are; None where there are none."""
        return sum(math.prod(shape) for shape in self.shapes.values()) or None

    @property
    def initial_std(self) -> float:
        """Standard deviation of the weights of a new layer."""
        return float(getattr(self.config, "initializer_range", 0.02) or 0.02)

    def identity(self, parameters: int, changes: Sequence[str] = ()) -> ModelIdentity:
        """What the records say of this model. changes: of `reading`, and of the run's head."""
        reading = self.reading or Reading()
        architectures = getattr(self.config, "architectures", None)
        architecture = _class_name(architectures) or _class_name([self.config.model_type])
        return ModelIdentity(
            id=self.id,
            revision=self.revision,
            hash=self.hash,
            architecture=architecture or "unknown",
            parameters=parameters,
            max_positions=position_limit(self.config),
            licence=licence_of(self.folder),
            tokenizer=reading.tokenizer,
            notes=reading.notes,
            changes=tuple(changes),
        )


def licence_of(folder: Path) -> str | None:
    """The identifier after `license:` in the card's front matter; None without a card or a single
    plain identifier.
    """
    import yaml

    try:
        with (folder / CARD).open("rb") as stream:
            lines = stream.read(_CARD_BYTES).decode("utf-8-sig", "ignore").splitlines()
        # Not the whole front matter: aliases let a few kilobytes of YAML fill any memory.
        fields = yaml.safe_load(_licence_line(lines))
    except (OSError, ValueError, RecursionError, yaml.YAMLError):
        return None
    match fields:
        case {"license": str(name)} if _IDENTIFIER.fullmatch(name):
            return name
    return None


def _licence_line(lines: Sequence[str]) -> str:
    """The line `license: ...` of the front matter, which begins a card between two lines of dashes;
    empty where there is none.
    """
    stripped = [line.rstrip() for line in lines]
    if stripped[:1] != [_DASHES] or _DASHES not in stripped[1:]:
        return ""
    front = stripped[1 : stripped.index(_DASHES, 1)]
    licence = next((line for line in front if line.startswith("license:")), "")
    if len(licence) > _LICENCE_LINE:
        return ""
    return licence


def find_checkpoint(
    model: str, *, offline: bool = False, trust_remote_code: bool = False
) -> Checkpoint:
    """Find `model` (downloading it unless `offline`), check its files, read its config and hash it.
    Loads no torch.

    Raises ModelError.
    """
    folder, name, revision = _locate(model, offline)
    config_file = folder / "config.json"
    if not config_file.is_file():
        hint = layout_hint(folder, "give a folder saved with save_pretrained")
        raise ModelError("no config.json in the model's folder", hint=hint, file=folder)
    check_folder(folder)
    check_pickle(folder, name)
    from transformers import AutoConfig

    try:
        config = AutoConfig.from_pretrained(folder, trust_remote_code=trust_remote_code)
    # Not narrower: what the library, or the model's own code, raises has no common class.
    except Exception as error:
        hint = (
            "the folder must hold a config that AutoConfig knows; --trust-remote-code allows "
            "the model's own code"
        )
        raise ModelError(
            f"the config cannot be read: {first_line(error)}", hint=hint, file=config_file
        ) from error
    seen = stamp(folder, code=trust_remote_code)
    digest = content_hash(folder, code=trust_remote_code)
    saved = forget_attention(config)
    return Checkpoint(name, revision, folder, digest, config, trust_remote_code, seen, saved)


def check_unchanged(checkpoint: Checkpoint) -> None:
    """Raises ModelError where the folder no longer holds what was hashed; reads files only if one
    was written to.
    """
    code = checkpoint.trust_remote_code
    try:
        unchanged = checkpoint.stamp == stamp(checkpoint.folder, code=code)
        unchanged = unchanged or content_hash(checkpoint.folder, code=code) == checkpoint.hash
    except (OSError, ModelError):
        unchanged = False
    if not unchanged:
        raise ModelError(
            "the model's files changed after this command had begun, so its runs would be of "
            "two models",
            hint="repeat the command; no other program may write to the checkpoint's folder",
            file=checkpoint.folder,
        )


def _class_name(names: Any) -> str | None:
    """The first of a config's texts where it can be a class's name; a config may hold anything."""
    match names:
        case [str(name), *_] if _CLASS.fullmatch(name):
            return name
    return None


def _locate(model: str, offline: bool) -> tuple[Path, str, str | None]:
    path = Path(model).expanduser()
    if path.is_dir():
        path = model_folder(path)
        return path, _folder_name(path), None
    if path.is_file():
        hint = "give the folder that holds the checkpoint; unpack an archive first"
        raise ModelError("is a file; a checkpoint is a folder", hint=hint, file=path)
    if model == DUMMY:
        return dummy_folder(), DUMMY, None
    check_may_be_on_hub(model)
    from huggingface_hub import snapshot_download

    name, _, revision = model.partition("@")
    try:
        get = partial(snapshot_download, name, local_files_only=offline)
        wanted = ["*.json", "*.txt", "*.model", "*.bpe", "bpe.codes", "*.safetensors", "*.py", CARD]
        folder = Path(patiently(lambda: get(revision=revision or None, allow_patterns=wanted)))
        if not any(folder.glob("*.safetensors")):
            get(revision=folder.name, allow_patterns=["*.json", "*.txt", "*.bin"])
    except client_errors() as error:
        message, hint = explain(error, name, "model", revision or "main")
        raise ModelError(f"model '{model}' could not be fetched: {message}", hint=hint) from error
    return folder, name, folder.name


_GENERIC = frozenset(
    {"model", "checkpoint", "encoder", "export", "final", "best", "latest", "last", "output"}
)


def _folder_name(path: Path) -> str:
    """The folder's own name; a name that says nothing is shown with its parent's."""
    path = path.absolute()
    if path.name in ("", ".."):
        path = path.resolve()
    is_step = path.name.startswith(("checkpoint-", "step-", "step_"))
    if is_step or path.name.lower() in _GENERIC:
        return f"{path.parent.name}/{path.name}"
    return path.name


@lru_cache(maxsize=2)
def _read_tokenizer(folder: Path, digest: str, trust_remote_code: bool) -> ReadTokenizer:
    """The tokenizer of a folder whose files have this hash: large ones take seconds to read."""
    from biobench.core.tokenizer import read_tokenizer

    return read_tokenizer(folder, trust_remote_code=trust_remote_code)


def load_tokenizer(checkpoint: Checkpoint) -> PreTrainedTokenizerBase:
    """The checkpoint's tokenizer, shared by all who ask for it: not to be changed. Raises
    ModelError when there is none or it does not fit the embeddings.
    """
    code = checkpoint.trust_remote_code
    tokenizer = _read_tokenizer(checkpoint.folder, checkpoint.hash, code).tokenizer
    rows = getattr(checkpoint.config, "vocab_size", None)
    if rows is not None:
        largest = max(tokenizer.get_vocab().values())
        if largest >= rows:
            raise ModelError(
                f"the tokenizer's largest id {largest} does not fit the embedding of {rows} rows",
                hint="tokenizer and weights come from different checkpoints",
                file=checkpoint.folder,
            )
    return tokenizer


def window(tokenizer: PreTrainedTokenizerBase, config: Any, max_length: int) -> int:
    """The effective window in tokens: the smallest of the task's, the tokenizer's and the model's
    limit.
    """
    limits = [max_length]
    positions = position_limit(config)
    if positions is not None:
        limits.append(positions)
    declared = tokenizer.model_max_length or 0
    if 0 < declared < _NO_LIMIT:
        limits.append(int(declared))
    return min(limits)


def quiet_libraries() -> None:
    """Keep the model library's own chatter out of the way of ours, whether it is loaded already or
    not.
    """
    import sys
    import warnings

    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    if "transformers" in sys.modules:
        from transformers.utils import logging

        logging.set_verbosity_error()  # type: ignore[no-untyped-call]
        logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    warnings.filterwarnings("ignore", category=UserWarning, module="torch")
