"""Controls of a needle task: what is reached without reading query and document together, and by matching strings.

The oracle is at 100%. Bags of words over the document alone and over the query alone must sit at chance, or
the examples give their answer away. The share of the query's words that stand in the document shows what
string matching gives, so that an encoder's accuracy can be held against it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from biobench.baselines.reading import bag_of_words
from biobench.schema.document import Document, Prediction, TaskData
from biobench.schema.needle import ABSENT, PRESENT
from biobench.schema.task import SPLITS
from biobench.score import oracle
from biobench.score.needle import Share, grid

SEED = 20250101
"""Of the linear models' solver."""

AT_CHANCE = 4
"""Controls that must be at chance: document alone, query alone, and the two of `encoder_controls`."""
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
    played: list[tuple[str, str, bool, Callable[[], Sequence[Prediction]]]] = [
        ("oracle", "returns the answer", False, lambda: oracle(data.test)),
        ("document alone", "bag of words over the whole document", True, lambda: _bag(data)),
        ("query alone", "bag of words over the query", True, lambda: _bag(asked)),
        (
            "lexical overlap",
            "share of the query's words in the document, cut on training",
            False,
            lambda: _overlap(data),
        ),
        ("exact match", "the query stands in the document as it is", False, lambda: _match(data.test)),
    ]
    whole = (None, None, None)
    return [
        Control(name, words, grid(data.test, [play()], LEVEL if chance else 0.95)[0][whole], chance)
        for name, words, chance, play in played
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


def render_controls(task: str, results: Sequence[Control], longest: int | None) -> str:
    """The controls as text, in percent."""
    lines = [f"{task}: controls" + ("" if longest is None else f" on lengths up to {longest}")]
    for c in results:
        share = f"{100 * c.share.mean:.1f} [{100 * c.share.low:.1f}, {100 * c.share.high:.1f}]"
        lines.append(f"{c.name:<16}{share:>22}  {c.words}" + ("; must be at chance and is NOT" if c.leaks else ""))
    return "\n".join(lines) + "\n"
