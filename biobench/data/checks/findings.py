"""What in a task's documents a reader of its scores should know, by name and number."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from biobench.data.checks import edges
from biobench.data.checks.similar import near, normalised, same
from biobench.data.counts import label_occurrences
from biobench.schema.document import Document
from biobench.schema.kind import KINDS
from biobench.schema.task import SPLITS, TaskSpec

Splits = Mapping[str, Sequence[Document]]
_PAIRS = (("test", "train"), ("validation", "train"), ("test", "validation"))
_EXAMPLES = 5


@dataclass(slots=True)
class Finding:
    """Something in the data that a reader of the scores should know."""

    name: str
    number: int
    known: int
    """The number that the spec's `findings` already knows of."""
    what: str
    examples: list[str]
    """Ids, labels or places, never text."""
    of_the_corpus: bool
    """How the corpus is, rather than how it is read or annotated."""

    @property
    def alarms(self) -> bool:
        """More of it than the spec knows."""
        return self.number > self.known

    @property
    def line(self) -> str:
        """Name, number, what it is and the first examples."""
        examples = f" ({', '.join(self.examples)})" if self.examples else ""
        return f"{self.name}: {self.number} {self.what}{examples}"


def withhold(findings: Iterable[Finding]) -> None:
    """Take out the examples: ids of patients and notes stay in the folder."""
    for finding in findings:
        finding.examples = []


Cases = tuple[str, list[str], str]
"""Name, an example for each, and what they are."""


def audit(
    spec: TaskSpec, documents: Splits, labels: Sequence[str], known: Mapping[str, int]
) -> list[Finding]:
    """All findings with a number above 0: texts that stand twice, and those of `audit_gold`.

    known: name to the number that the spec knows of.
    """
    leaks = (*_duplicates(documents), *_shared_groups(documents), *_repeats(documents))
    return [*_findings(leaks, known), *audit_gold(spec, documents, labels, known)]


def audit_gold(
    spec: TaskSpec, documents: Splits, labels: Sequence[str], known: Mapping[str, int]
) -> list[Finding]:
    """Findings on labels and mentions, which are quickly found.

    Tasks that ask for a number have no labels that could lack a document, and concepts without a
    query are no mistake.
    """
    traits = KINDS[spec.type]
    read = [*_remarked(documents)]
    if spec.is_ner:
        read += [*_dropped(documents), *_edges(documents)]
    if traits.numeric or traits.ranked:
        return _findings(read, known, of_the_corpus=False)
    tested, trained = (set(label_occurrences(documents[name])) for name in ("test", "train"))
    lacking = [label for label in labels if label not in tested]
    untrained = [label for label in labels if label in tested - trained]
    read += [
        *_alike(labels),
        ("unsupported.train", untrained, "labels with gold in test and none in train"),
    ]
    result = _findings([("unsupported.test", lacking, "labels without gold in test")], known)
    return [*result, *_findings(read, known, of_the_corpus=False)]


def _findings(
    every: Iterable[Cases],
    known: Mapping[str, int],
    *,
    of_the_corpus: bool = True,
) -> list[Finding]:
    return [
        Finding(
            name=name,
            number=len(cases),
            known=known.get(name, 0),
            what=words,
            examples=list(dict.fromkeys(cases))[:_EXAMPLES],
            of_the_corpus=of_the_corpus,
        )
        for name, cases, words in every
        if cases
    ]


def _duplicates(documents: Splits) -> Iterator[Cases]:
    texts = {name: [d.reading for d in documents[name]] for name in SPLITS}
    for kind, find, words in (
        ("duplicates", same, "occur verbatim in"),
        ("near", near, "are nearly the same as one in"),
    ):
        for a, b in _PAIRS:
            ids = [documents[a][i].id for i in find(texts[a], texts[b])]
            yield f"{kind}.{a}-{b}", ids, f"{a} texts that {words} {b}"


def _shared_groups(documents: Splits) -> Iterator[Cases]:
    for a, b in _PAIRS:
        shared = {d.group for d in documents[a]} & {d.group for d in documents[b]}
        yield f"groups.{a}-{b}", sorted(shared), f"groups with documents in {a} and {b}"


def _repeats(documents: Splits) -> Iterator[Cases]:
    for name in SPLITS:
        first_ids: dict[str, str] = {}
        repeats = [d.id for d in documents[name] if first_ids.setdefault(d.reading, d.id) != d.id]
        yield f"twice.{name}", repeats, f"{name} texts that repeat another"
    for name in SPLITS:  # of a pair the second text; loading refuses the others
        empty = [d.id for d in documents[name] if not d.text.strip()]
        yield f"empty.{name}", empty, f"{name} documents without text"


def _dropped(documents: Splits) -> Iterator[Cases]:
    """Mentions that the decoding of tags drops."""
    for name in SPLITS:
        dropped = [
            d.id for d in documents[name] for remark in d.remarks if remark.finding == "dropped"
        ]
        mentions = len(dropped) + sum(len(d.spans) for d in documents[name])
        words = f"of {mentions} mentions in {name} begin with I-, which `decode: strict` drops"
        if 2 * len(dropped) > mentions:
            words += "; is `reader.scheme` IOB1?"
        else:
            words += "; `reader.decode: lenient` keeps them"
        yield f"dropped.{name}", dropped, words


def _edges(documents: Splits) -> Iterator[Cases]:
    every = [d for name in SPLITS for d in documents[name]]
    cut, blank = list[str](), list[str]()
    for document in every:
        inside, on_blank = edges.unreachable(document)
        cut += [document.id] * len(inside)
        blank += [document.id] * len(on_blank)
    if not (cut or blank):
        return
    words = (
        f"of {sum(len(d.spans) for d in every)} mentions have edges that no model predicts: "
        f"{len(cut)} begin or end inside a word, {len(blank)} with white space"
    )
    meant = edges.cause(every)
    if meant is not None:
        words += f"; {meant}"
    yield "edges", [*cut, *blank], words


_REMARKED = {
    "quotes": "rows whose quoted field goes on over several lines",
    "repeated": "documents stand again in their file with the same content and are read once",
}
"""What readers remark on, and what there is of it."""


def _remarked(documents: Splits) -> Iterator[Cases]:
    remarks = [remark for name in SPLITS for d in documents[name] for remark in d.remarks]
    for finding, meaning in _REMARKED.items():
        yield finding, [r.about for r in remarks if r.finding == finding], meaning


_TWINS = str.maketrans(
    "АВЕЅІЈКМНОРСТХаеіјорсухѕΑΒΕΖΗΙΚΜΝΟΡΤΥΧοµ",
    "ABESIJKMHOPCTXaeijopcyxsABEZHIKMNOPTYXoμ",
)
"""Cyrillic and Greek letters to the Latin ones that look like them."""


def looks_like(label: str) -> str:
    """What an eye sees of a label: without case, blanks, kinds of dashes, and how accents are
    encoded.
    """
    seen = ""
    for sign in unicodedata.normalize("NFKC", label.translate(_TWINS)):
        category = unicodedata.category(sign)
        if category != "Cf":
            seen += "-" if category == "Pd" else sign
    return normalised(seen.casefold())


def _alike(labels: Sequence[str]) -> Iterator[Cases]:
    """Labels that look like another one, spelled so that they can be told apart."""
    groups: dict[str, list[str]] = {}
    for label in labels:
        groups.setdefault(looks_like(label), []).append(label)
    lookalikes = [ascii(label) for group in groups.values() if len(group) > 1 for label in group]
    yield "alike", lookalikes, "labels look like another one of these"
