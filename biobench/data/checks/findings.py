"""What in a task's documents a reader of its scores should know, by name and number."""

from __future__ import annotations

import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from operator import attrgetter

from biobench.core.grouped import grouped
from biobench.core.text import plural
from biobench.data.checks import edges
from biobench.data.checks.similar import near, normalised, readings, same
from biobench.data.counts import groups_of, label_occurrences
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
        """Name, number, what it is and the first examples; long ids without their middle, which
        stands in the JSON.
        """
        line = f"{self.name}: {self.number} {self.what}"
        if not self.examples:
            return line
        return f"{line} ({', '.join(map(_short, self.examples))})"


_LONGEST = 40
"""Signs of an example that are shown: hashes are longer."""


def _short(example: str) -> str:
    if len(example) <= _LONGEST:
        return example
    return f"{example[:20]}…{example[-8:]}"


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
    copies = chain(_duplicates(documents), _repeats(documents))
    return [*_findings(copies, known), *audit_gold(spec, documents, labels, known)]


def audit_gold(
    spec: TaskSpec, documents: Splits, labels: Sequence[str], known: Mapping[str, int]
) -> list[Finding]:
    """Findings on groups of two splits, labels and mentions, which are quickly found.

    Tasks that ask for a number have no labels that could lack a document, and concepts without a
    query are no mistake.
    """
    traits = KINDS[spec.type]
    read = [*_shared_groups(documents), *_remarked(documents)]
    if spec.is_ner:
        read += [*_dropped(documents), *_edges(documents)]
    if traits.numeric or traits.ranked:
        return _findings(read, known, of_the_corpus=False)
    tested = set(label_occurrences(documents["test"]))
    untrained = tested.difference(label_occurrences(documents["train"]))
    without_test = [label for label in labels if label not in tested]
    without_train = [label for label in labels if label in untrained]
    noun = plural(len(without_train), "label")
    read += [
        *_alike(labels),
        ("unsupported.train", without_train, f"{noun} with gold in test and none in train"),
    ]
    noun = plural(len(without_test), "label")
    lacking = ("unsupported.test", without_test, f"{noun} without gold in test")
    return [*_findings([lacking], known), *_findings(read, known, of_the_corpus=False)]


def _findings(
    every: Iterable[Cases], known: Mapping[str, int], *, of_the_corpus: bool = True
) -> list[Finding]:
    """The cases that there are."""
    findings: list[Finding] = []
    for name, cases, words in every:
        if cases:
            finding = Finding(
                name=name,
                number=len(cases),
                known=known.get(name, 0),
                what=words,
                examples=list(dict.fromkeys(cases))[:_EXAMPLES],
                of_the_corpus=of_the_corpus,
            )
            findings.append(finding)
    return findings


def _duplicates(documents: Splits) -> Iterator[Cases]:
    texts = {name: readings(documents[name]) for name in SPLITS}
    for split, earlier in _PAIRS:
        ids = _ids_at(documents[split], same(texts[split], texts[earlier]))
        copies = plural(len(ids), "text that occurs", "texts that occur")
        words = f"{split} {copies} verbatim in {earlier}"
        yield f"duplicates.{split}-{earlier}", ids, words
    for split, earlier in _PAIRS:
        ids = _ids_at(documents[split], near(texts[split], texts[earlier]))
        lookalikes = plural(len(ids), "text that is", "texts that are")
        words = f"{split} {lookalikes} nearly the same as one in {earlier}"
        yield f"near.{split}-{earlier}", ids, words


def _ids_at(documents: Sequence[Document], places: Iterable[int]) -> list[str]:
    return [documents[place].id for place in places]


def _shared_groups(documents: Splits) -> Iterator[Cases]:
    for split, earlier in _PAIRS:
        shared = groups_of(documents[split]) & groups_of(documents[earlier])
        noun = plural(len(shared), "group")
        words = f"{noun} with documents in {split} and {earlier}"
        yield f"groups.{split}-{earlier}", sorted(shared), words


def _repeats(documents: Splits) -> Iterator[Cases]:
    """Texts that repeat another of their split, and those of a pair that are empty; loading refuses
    other empty ones.
    """
    for name in SPLITS:
        seen: set[str] = set()
        repeats: list[str] = []
        for document in documents[name]:
            if document.reading in seen:
                repeats.append(document.id)
            seen.add(document.reading)
        words = plural(len(repeats), "text that repeats", "texts that repeat")
        yield f"twice.{name}", repeats, f"{name} {words} another"
    for name in SPLITS:
        empty = [document.id for document in documents[name] if not document.text.strip()]
        noun = plural(len(empty), "document")
        yield f"empty.{name}", empty, f"{name} {noun} without text"


def _dropped(documents: Splits) -> Iterator[Cases]:
    """Mentions that the decoding of tags drops."""
    for name in SPLITS:
        dropped: list[str] = []
        mentions = 0
        for document in documents[name]:
            findings = Counter(map(attrgetter("finding"), document.remarks))
            dropped += [document.id] * findings["dropped"]
            mentions += len(document.spans)
        mentions += len(dropped)
        remedy = "`reader.decode: lenient` keeps them"
        if 2 * len(dropped) > mentions:
            remedy = "is `reader.scheme` IOB1?"
        begin = f"of {mentions} mentions in {name} begin with I-"
        yield f"dropped.{name}", dropped, f"{begin}, which `decode: strict` drops; {remedy}"


def _edges(documents: Splits) -> Iterator[Cases]:
    every = _every_document(documents)
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


def _every_document(documents: Splits) -> list[Document]:
    return list(chain.from_iterable(documents[name] for name in SPLITS))


def _remarked(documents: Splits) -> Iterator[Cases]:
    """What readers remark on: long quotes, and documents that are repeated."""
    about: defaultdict[str, list[str]] = defaultdict(list)
    for document in _every_document(documents):
        for finding, example in document.remarks:
            about[finding].append(example)
    quotes, repeated = about["quotes"], about["repeated"]
    rows = plural(len(quotes), "row")
    yield "quotes", quotes, f"{rows} whose quoted field goes on over several lines"
    words = plural(len(repeated), "document that stands", "documents that stand")
    yield "repeated", repeated, f"{words} again with the same content, read once"


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
    lookalikes: list[str] = []
    for group in grouped(labels, looks_like).values():
        if len(group) > 1:
            lookalikes += map(ascii, group)
    yield "alike", lookalikes, "labels look like another one of these"
