"""The types that travel from the readers to the scores. Truth is character offsets and labels."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from biobench.schema.needle import NeedlePlan


class Span(NamedTuple):
    """A mention: characters [start, end) of the document's text, with its label."""

    start: int
    end: int
    label: str


class Remark(NamedTuple):
    """Something that a reader saw in a document and that a user should know."""

    finding: str
    """As `biobench data verify` names it: ``dropped``, ``quotes``, ``repeated``."""
    about: str
    """A label, an id, or a place in the file."""


@dataclass(frozen=True, slots=True)
class Document:
    """One unit of a corpus, as every reader yields it.

    id is unique in the task; group (patient, article, file) is what resampling draws. `tokens` are
    the corpus's own token boundaries as character offsets, `tags` its tags, both only for token
    formats.
    `spans` are decoded from the tags by the reader's declared mode, duplicates removed.
    """

    id: str
    group: str
    text: str
    split: str
    spans: tuple[Span, ...] = ()
    labels: tuple[str, ...] = ()
    tokens: tuple[tuple[int, int], ...] = ()
    tags: tuple[str, ...] = ()
    origin: str = ""
    """``file:line`` where the document begins; for messages."""
    query: str = ""
    """Text that goes in before the document, as the first of a pair."""
    pieces: tuple[tuple[int, int], ...] = ()
    """Characters [start, end) of the text's parts (options of a question, sentences to choose
    from), in order; the encoder reads them parted from each other. Where start is end, the part is
    missing.
    """
    evidence: tuple[tuple[str, int], ...] = ()
    """(label, character past its first mention), where a classification corpus has mentions; else
    empty. No run trains on it and no hash holds it: it tells how many labels a window hides.
    """
    concepts: tuple[tuple[int, int, str], ...] = ()
    """(start, end, identifier) of mentions that the corpus links to a terminology, one entry an
    identifier. No run trains on it and no hash holds it: slices ask it which concepts are new.
    """
    unexpressed: tuple[str, ...] = ()
    """Labels of the corpus's mentions that this unit's borders, tokens or flat tags cannot hold, or
    that the decoding of its tags drops. They are no gold and in no score; runs and reports give
    their number.
    """
    remarks: tuple[Remark, ...] = ()
    """What the reader saw; no run reads it and no hash holds it."""
    plan: NeedlePlan | None = None
    """How the document is fitted to a model's tokens, where it is made for a length; `text` is a
    reading copy.
    """

    @property
    def reading(self) -> str:
        """Both texts of a pair, the first before the second; else the text. Of a planned example
        the text alone.
        """
        if self.query and self.plan is None:
            return f"{self.query}\n{self.text}"
        return self.text


@dataclass(frozen=True, slots=True)
class Prediction:
    """What a model (or a policy) says of one document: enough to compute any metric later.

    NER: `spans`, and `tags` on the corpus's tokens where there are any; span_scores parallel to
    spans (0-1, mean token probability). Classification: `labels` decided and `label_scores`, one
    per label of the task in its order (softmax or sigmoid, 0-1).
    """

    document: str
    spans: tuple[Span, ...] = ()
    span_scores: tuple[float, ...] = ()
    tags: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    label_scores: tuple[float, ...] = ()


@dataclass(slots=True)
class TaskData:
    """A task's documents, read, labelled and split.

    gold_labels: the labels that have gold in the full test split, in the task's label order; the
    set over which macro_f1 is taken, whatever `limit` was applied. hash: content hash of all
    documents before
    `limit` and of the source's id. unexpressed: split to label to mentions that are in no score
    (see `Document`), and
    count_problems: how the counts contradict the spec, one line each; both of the full data.
    """

    documents: dict[str, list[Document]]
    gold_labels: tuple[str, ...]
    labels: tuple[str, ...]
    source: str
    hash: str
    decode: str = "strict"
    unexpressed: dict[str, dict[str, int]] = field(default_factory=dict)
    count_problems: list[str] = field(default_factory=list)

    @property
    def train(self) -> list[Document]:
        """Training documents."""
        return self.documents["train"]

    @property
    def validation(self) -> list[Document]:
        """Validation documents."""
        return self.documents["validation"]

    @property
    def test(self) -> list[Document]:
        """Test documents."""
        return self.documents["test"]
