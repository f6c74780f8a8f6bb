"""Controls of a needle task: what is reached without reading query and document together, and by matching strings.

The oracle is at 100%. Bags of words over the document alone and over the query alone must sit at chance, or the
examples give their answer away. The share of the query's words that stand in the document shows what string matching
gives. Two controls go through an encoder, with the needle removed, and swapped with another document's: the whole way
of a run is taken on examples whose documents no longer answer their query, in training, validation and test alike.
What is still found there the examples give away by themselves, so both must be at chance.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from biobench.baselines.reading import bag_of_words
from biobench.core.machine import resolve_device, resolve_precision
from biobench.data.catalog import LoadedTask
from biobench.errors import UsageError
from biobench.finetune.engine import finetune, load_encoder
from biobench.finetune.loop import Progress
from biobench.finetune.prepare import prepare
from biobench.models.loading import find_checkpoint, load_tokenizer, window
from biobench.schema.document import Document, Prediction, TaskData
from biobench.schema.needle import ABSENT, PRESENT, cell_of, rendered
from biobench.schema.task import SPLITS, parse_seeds
from biobench.score import oracle
from biobench.score.needle import Share, grid

SEED = 20250101
"""Of the linear models' solver."""

AT_CHANCE = 4
"""Controls that must be at chance: document alone, query alone, needle removed and needle swapped."""
LEVEL = 1 - 0.05 / AT_CHANCE
"""Of the interval of each of them: without a leak, one of all four leaves chance in 5% of the tasks at most."""

_WORD = re.compile(r"\w+(?:[/.,]\w+)*")


@dataclass(frozen=True, slots=True)
class Control:
    """One control on the test split. at_chance: whether it must be; leaks: it must be and its interval is not."""

    name: str
    words: str
    share: Share
    at_chance: bool

    @property
    def leaks(self) -> bool:
        """The interval of a control that should be at chance leaves 50%."""
        return self.at_chance and not self.share.low <= 0.5 <= self.share.high


def controls(data: TaskData, longest: int | None = None) -> list[Control]:
    """All controls on the examples of at most `longest` tokens (None: all)."""
    if longest is not None:
        kept = {s: [d for d in data.documents[s] if d.plan and d.plan.length <= longest] for s in SPLITS}
        data = replace(data, documents=kept)
    asked = replace(data, documents={s: [replace(d, text=d.query) for d in data.documents[s]] for s in SPLITS})
    predictions: list[tuple[str, str, Sequence[Prediction], bool]] = [
        ("oracle", "returns the answer", oracle(data.test), False),
        ("document alone", "bag of words over the whole document", _bag(data), True),
        ("query alone", "bag of words over the query", _bag(asked), True),
        ("lexical overlap", "share of the query's words in the document, cut on training", _overlap(data), False),
        ("exact match", "the query stands in the document as it is", _match(data.test), False),
    ]
    whole = (None, None, None)
    return [
        Control(name, words, grid(data.test, [answers], LEVEL if chance else 0.95)[0][whole], chance)
        for name, words, answers, chance in predictions
    ]


def _bag(data: TaskData) -> Sequence[Prediction]:
    return bag_of_words(data, SEED, single=True).draws[0]


def _match(documents: Sequence[Document]) -> list[Prediction]:
    return [Prediction(d.id, labels=(PRESENT if d.query in d.text else ABSENT,)) for d in documents]


def _overlap(data: TaskData) -> list[Prediction]:
    shares = np.array([_shared(d) for d in data.train])
    truth = np.array([d.labels == (PRESENT,) for d in data.train])
    cuts = np.unique(shares)
    right = [((shares >= cut) == truth).mean() for cut in cuts]
    cut = float(cuts[int(np.argmax(right))])
    return [Prediction(d.id, labels=(PRESENT if _shared(d) >= cut else ABSENT,)) for d in data.test]


def _shared(document: Document) -> float:
    wanted = set(_WORD.findall(document.query.lower()))
    return len(wanted & set(_WORD.findall(document.text.lower()))) / len(wanted)


def encoder_controls(
    model: str,
    task: LoadedTask,
    data: TaskData,
    *,
    seeds: str | None = None,
    device: str = "auto",
    offline: bool = False,
    trust_remote_code: bool = False,
    progress: Progress = lambda done, total, what: None,
) -> list[Control]:
    """Both controls of `model` on a needle task, over the lengths that it reads; accuracy is the mean over seeds.

    Nothing is stored. Raises UsageError where the task is none of needles or a split has fewer than two pairs, and
    ModelError and TrainingError as a run does.
    """
    spec = task.spec
    if spec.type != "needle":
        raise UsageError(f"task {task.id} hides no needles", hint="controls through an encoder are for needle tasks")
    place = resolve_device(device)
    checkpoint = find_checkpoint(model, offline=offline, trust_remote_code=trust_remote_code)
    loaded, tokenizer = load_encoder(checkpoint, place), load_tokenizer(checkpoint)
    size = window(tokenizer, checkpoint.config, spec.protocol.max_length)
    precision = resolve_precision(spec.training.precision, place)
    results = []
    altered: list[tuple[str, str, Callable[[Sequence[Document]], list[Document]]]] = [
        ("needle removed", "the haystack alone, to its full length", without_needle),
        ("needle swapped", "the needle of another document with the same answer", with_another_needle),
    ]
    for name, words, alter in altered:
        changed = replace(data, documents={split: alter(data.documents[split]) for split in SPLITS})
        prepared = prepare(spec, changed, tokenizer, size)
        runs = [
            finetune(loaded, prepared, seed, precision, progress).predictions
            for seed in parse_seeds(spec.seeds if seeds is None else seeds)
        ]
        share = grid(prepared.test.documents, runs, LEVEL)[0][None, None, None]
        results.append(Control(name, f"{checkpoint.id}: {words}", share, at_chance=True))
    return results


def without_needle(documents: Sequence[Document]) -> list[Document]:
    """The examples without their needles: the two of a pair become the same but for their answer."""
    return [_with_needle(document, "") for document in documents]


def with_another_needle(documents: Sequence[Document]) -> list[Document]:
    """Each example with the needle of one of another pair, of the same answer and, but for the last, the same template.

    The answer stays that of the donor, so a needle that tells its answer without the query is found too. Raises
    UsageError where there is no other pair.
    """
    groups = sorted({document.group for document in documents})
    random.Random(SEED).shuffle(groups)
    order = {group: place for place, group in enumerate(groups)}
    needles: dict[str, str] = {}
    for label in sorted({document.labels for document in documents}):
        same_label = [document for document in documents if document.labels == label]
        if len(same_label) < 2:
            raise UsageError("there are fewer than two pairs, so no needle can be swapped", hint="raise the limit")
        same_label.sort(key=lambda document: (_template(document), order[document.group]))
        for document, donor in zip(same_label, [*same_label[1:], same_label[0]], strict=True):
            assert donor.plan is not None
            needles[document.id] = donor.plan.needle
    return [_with_needle(document, needles[document.id]) for document in documents]


def _template(document: Document) -> str:
    cell = cell_of(document.id)
    return "" if cell is None else cell.template


def _with_needle(document: Document, needle: str) -> Document:
    plan = document.plan
    assert plan is not None
    words = len(document.text.split()) - len(plan.needle.split())
    if plan.fit == "words":
        words += len(plan.needle.split()) - len(needle.split())
    changed = plan._replace(needle=needle)
    return replace(document, text=rendered(changed, words), plan=changed)


def render_controls(task: str, results: Sequence[Control], longest: int | None) -> str:
    """The controls as text, in percent."""
    lines = [f"{task}: controls" + ("" if longest is None else f" on lengths up to {longest}")]
    for c in results:
        share = f"{100 * c.share.mean:.1f} [{100 * c.share.low:.1f}, {100 * c.share.high:.1f}]"
        lines.append(f"{c.name:<16}{share:>22}  {c.words}" + ("; must be at chance and is NOT" if c.leaks else ""))
    return "\n".join(lines) + "\n"
