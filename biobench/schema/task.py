"""TaskSpec: what a task is, declared in YAML and nothing else.

Fields marked descriptive explain a task and do not enter its hash; every other field does.
"""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, StringConstraints, field_validator, model_validator

from biobench.schema.kind import KINDS, kind_names, metric_names
from biobench.schema.source import (
    Address,
    Labels,
    ReaderSpec,
    Source,
    SplitFoldFiles,
    Splits,
    check_once,
    descriptive,
    fail,
    later,
    sources_named,
)
from biobench.schema.strict import OneOf, Strict
from biobench.schema.training import Head, Probe, Protocol, Training

TaskType = Annotated[str, OneOf(kind_names)]
"""Name of a kind of task (`biobench/kinds/`)."""
TaskId = Annotated[str, StringConstraints(pattern="^[a-z0-9_]+$")]
Access = Literal["open", "registration", "agreement"]
SPLITS = ("train", "validation", "test")
MetricName = Annotated[str, OneOf(metric_names)]


class TaskMetrics(Strict):
    """Which average leads, and which one a published number is compared with."""

    primary: MetricName = "macro_f1"
    paper: MetricName = descriptive()
    """Average that a published number is compared with; changes no run."""
    selection: MetricName | None = None
    """Average that picks the best epoch on validation; default: `primary`."""
    negative_label: str | None = None
    """Label left out of micro_f1_positive."""


class Obtain(Strict):
    """What a user has to do to get data that cannot simply be fetched, in words that a newcomer can
    follow.
    """

    needs: str | None = None
    """The agreement or registration; null where the files are free but have no known address."""
    pages: list[str]
    """Addresses, in the order in which they are visited."""
    steps: list[str]


class Gate(Strict):
    """What the text must prove before a score is ranked."""

    expect: Literal["text_informative", "chance", "beyond_words"] = "text_informative"
    """beyond_words: counting words cannot reach the labels (a question whose answer takes
    understanding). What it reaches is shown and asked nothing; the scorer's checks remain.
    """


Aspect = Literal[
    "data",
    "split",
    "unit",
    "labels",
    "window",
    "truncation",
    "head",
    "selection",
    "patience",
    "epochs",
    "batch",
    "precision",
    "decoding",
    "seeds",
    "code",
]


class Deviation(Strict):
    """One aspect of the protocol, as it is here and as the compared publication has it.

    What the publication leaves open is a deviation too: `compared` then says that it is not stated.
    """

    aspect: Aspect
    here: str
    compared: str


def _once(value: list[Deviation]) -> list[Deviation]:
    check_once("deviation", [deviation.aspect for deviation in value])
    return value


Deviations = Annotated[list[Deviation], AfterValidator(_once)]
"""A spec's list; each aspect stands once."""


def parse_seeds(text: str) -> list[int]:
    """``42-50`` or ``42,43`` (or both: ``1,5-7``) to a list of distinct seeds. Raises
    ValueError."""
    seeds: list[int] = []
    for seed_range in text.split(","):
        match = re.fullmatch(r"\s*(\d+)\s*(?:-\s*(\d+)\s*)?", seed_range)
        if not match:
            raise fail(f"seeds '{text}' are not understood", "write 42-50 or 42,43")
        bounds = list(map(int, filter(None, match.groups())))
        seeds += _seeds_between(bounds[0], bounds[-1], seed_range.strip())
    if len(set(seeds)) < len(seeds):
        raise fail(f"seeds '{text}' name one twice", "write each once")
    return seeds


def _seeds_between(low: int, high: int, text: str) -> range:
    """The seeds from low to high. text: as they were written."""
    if high < low:
        hint = f"write {high}-{low}, not {low}-{high}"
        raise fail(f"seeds '{text}' run backwards", hint)
    if high - low > 999:
        raise fail(f"seeds '{text}' are more than a thousand", "name fewer")
    return range(low, high + 1)


def _seeds(value: str) -> str:
    parse_seeds(value)
    return value


Seeds = Annotated[str, AfterValidator(_seeds)]
"""Seeds as `parse_seeds` reads them."""


def _rising(scale: tuple[float, float]) -> tuple[float, float]:
    lowest, highest = scale
    if lowest >= highest:
        hint = "lowest number first, as `scale: [0, 5]`"
        raise fail(f"scale {list(scale)} does not rise", hint)
    return scale


Scale = Annotated[tuple[float, float], AfterValidator(_rising)]
"""Lowest and highest number."""


class TaskSpec(Strict):
    """A benchmark task. JSON Schema: `biobench tasks schema`."""

    id: TaskId
    version: int = Field(ge=1)
    name: str = descriptive()
    language: Annotated[str, StringConstraints(pattern="^[a-z]{2}$")]
    """ISO 639-1 code."""
    type: TaskType
    corpus: str | None = None
    """Tasks on the same texts share it; default: the id."""
    sources: tuple[Source, ...] = ()
    source: Source | None = None
    """A single source, with `reader` beside it or inside it."""
    reader: ReaderSpec | None = None
    labels: Labels
    """The label set in order, or the rule that finds it in the data."""
    splits: Splits = "official"
    scale: Scale | None = later(None)
    """regression: lowest and highest number of the corpus's scale; predictions are cut to it."""
    unit: Literal["sentence", "line", "document"]
    seeds: Seeds = "42-46"
    protocol: Protocol = Protocol()
    training: Training
    head: Head
    probe: Probe | None = later(None)
    """What is trained where the encoder is frozen."""
    metric: TaskMetrics
    gate: Gate = descriptive(Gate())
    access: Access = descriptive()
    obtain: Obtain | None = descriptive(None)
    """Instructions where `fetch` cannot get the data; required for access agreement."""
    licence: str = descriptive()
    homepage: Address = descriptive()
    citation: str = descriptive()
    tags: list[str] = descriptive([])
    """What `--tag` picks tasks by, such as clinical."""
    notes: list[str] = descriptive([])
    deviations: Deviations = descriptive([])
    """What is otherwise than in the published protocol that scores are compared with; empty:
    nothing known.
    """
    counts: dict[str, dict[str, int]] = descriptive({})
    """Counted facts per split, or of `all` together (documents, mentions, a label's name: its
    support), checked by validation.
    """
    findings: dict[str, int] = descriptive({})
    """Known findings of `biobench data verify`, by name, with their number; more than that is
    pointed out.
    """
    published_as: str | None = descriptive(None)
    """Id under which published scores are comparable with this task; null: with none."""
    variant_of: str | None = descriptive(None)
    """Id of the task that this one varies; variants are run by name and stay out of the suites."""

    @field_validator("labels")
    @classmethod
    def _labels(cls, value: Labels) -> Labels:
        if not isinstance(value, list):
            return value
        check_once("label", value)
        if not value or "" in map(str.strip, value):
            raise fail("labels must be at least one non-empty text", "list the labels")
        return value

    @model_validator(mode="after")
    def _sources_fit(self) -> TaskSpec:
        if (self.source is None) == (not self.sources):
            hint = "a list under `sources:` or one mapping under `source:`"
            raise fail("give either sources or source", hint)
        sources_named(self.sources)
        if self.sources and self.reader is not None:
            raise fail("`reader` does not go with several sources", "put a reader into each source")
        for source in self.all_sources:
            reader = source.reader or self.reader
            if reader is None:
                raise fail("a source has no reader", "add `reader: {format: ...}` to it")
            self._check_folds(source)
        self._check_access()
        return self

    def _check_access(self) -> None:
        """Raise FieldError where an agreement is not named."""
        agreement = getattr(self.obtain, "needs", None)
        if self.access == "agreement" and not agreement:
            message = "access 'agreement' needs the agreement's name, pages and steps"
            raise fail(message, "add `obtain: {needs, pages, steps}`")

    def _check_folds(self, source: Source) -> None:
        """Raise FieldError unless both the splits and a file's name speak of folds, or neither."""
        has_rule = self.resampled(source) is not None
        if has_rule == source.has_folds:
            return
        files = "without splits.fold_files, a file"
        if has_rule:
            files = "no file"
        raise fail(
            f"{files} of source '{source.id}' names {{fold}}",
            "write `{fold}` in place of the number, with `splits: {fold_files: 10}`",
        )

    @model_validator(mode="after")
    def _kind_fits(self) -> TaskSpec:
        """What the kind of task does not have stays at its default, and what it needs is there."""
        KINDS[self.type].check(self)
        return self

    @property
    def all_sources(self) -> tuple[Source, ...]:
        """The sources in order of preference."""
        return self.sources if self.source is None else (self.source,)

    def path_of(self, source: Source) -> tuple[str | int, ...]:
        """Where the source stands in the spec's file."""
        if self.source is not None:
            return ("source",)
        return "sources", self.sources.index(source)

    @property
    def corpus_id(self) -> str:
        """The declared corpus, or the task's own id."""
        return self.corpus or self.id

    @property
    def selection(self) -> MetricName:
        """The average that picks the best weights on validation."""
        return self.metric.selection or self.metric.primary

    @property
    def is_ner(self) -> bool:
        """True where truth is spans."""
        return KINDS[self.type].spans

    @property
    def pooling(self) -> tuple[str, str] | None:
        """The field that says which states of a text give its answer, and its value; None where
        words and spans have answers of their own.
        """
        if self.head.kind != "sequence":
            return None
        if self.training.encoder == "frozen" and self.probe is not None:
            return "probe.pooling", self.probe.pooling
        return "head.pooling", self.head.pooling

    @property
    def reads_first_token(self) -> bool:
        """Whether the state of a text's first token is to stand for the text."""
        return self.pooling is not None and self.pooling[1] in ("cls", "attention")

    def reader_of(self, source: Source) -> ReaderSpec:
        """The reader that `source` is read with."""
        reader = source.reader or self.reader
        assert reader is not None
        return reader

    def splits_of(self, source: Source) -> Splits:
        """How `source` is split."""
        return source.splits if source.splits is not None else self.splits

    def resampled(self, source: Source) -> SplitFoldFiles | None:
        """The rule by which `source` is split several times; None where it has one split."""
        splits = self.splits_of(source)
        return splits if isinstance(splits, SplitFoldFiles) else None
