"""What a task's documents hold, in numbers, and where the numbers are not those of the spec."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from operator import attrgetter

from biobench.core.text import plural
from biobench.schema.document import Document
from biobench.schema.task import TaskSpec

Counts = dict[str, dict[str, int]]
"""Split to what is counted to its number."""


def groups_of(documents: Iterable[Document]) -> set[str]:
    """The groups of the documents."""
    return set(map(attrgetter("group"), documents))


def label_occurrences(documents: Iterable[Document]) -> Iterator[str]:
    """The labels of the documents and of their mentions, as often as they stand there."""
    for document in documents:
        yield from document.labels
        for span in document.spans:
            yield span.label


def count(documents: Sequence[Document], labels: Sequence[str], ner: bool) -> dict[str, int]:
    """Documents, groups, and for NER tokens, mentions and mentions per label (distinct ones); else
    documents with any label and per label. Labels without support are skipped.
    """
    result = {"documents": len(documents), "groups": len(groups_of(documents))}
    if ner:
        tokens = map(attrgetter("tokens"), documents)
        spans = list(chain.from_iterable(map(attrgetter("spans"), documents)))
        support = Counter(map(attrgetter("label"), spans))
        result |= {"tokens": sum(map(len, tokens)), "mentions": len(spans)}
    else:
        labels_of_documents = list(map(attrgetter("labels"), documents))
        support = Counter(chain.from_iterable(labels_of_documents))
        result["labelled"] = sum(map(bool, labels_of_documents))
    return result | _positive(support, labels)


def _positive(numbers: Counter[str], labels: Sequence[str]) -> dict[str, int]:
    """The labels that are there with their numbers, in the order of the labels."""
    return {label: numbers[label] for label in labels if numbers[label]}


def compare_counts(spec: TaskSpec, counted: Counts, source: str) -> list[str]:
    """One line per count that differs from the declared one; what is not declared is not compared.
    `all` is the sum of the splits.
    """
    counts_of = {source.id: source.counts for source in spec.all_sources}
    declared = counts_of[source]
    if declared is None:
        declared = spec.counts
    numbers = {split: Counter(of_split) for split, of_split in counted.items()}
    numbers["all"] = sum(numbers.values(), Counter())
    problems: list[str] = []
    for split, expected in declared.items():
        if split not in numbers:
            problems.append(f"counts.{split}: there is no such split")
            continue
        for name, number in expected.items():
            found = numbers[split][name]
            if found != number:
                words = f"the spec says {number}, source '{source}' has {found}"
                problems.append(f"counts.{split}.{name}: {words}")
    return problems


def count_unexpressed(documents: Mapping[str, Sequence[Document]], labels: Sequence[str]) -> Counts:
    """Split -> label -> mentions of the corpus that are in no score (`Document.unexpressed`); only
    numbers above 0.
    """
    result: Counts = {}
    for split, split_documents in documents.items():
        numbers: Counter[str] = Counter()
        for document in split_documents:
            numbers.update(document.unexpressed)
        if numbers:
            result[split] = _positive(numbers, labels)
    return result


def unexpressed_in_words(counted: Counts) -> str:
    """``7 mentions that units, tokens or decoding cannot express, in no score: train 5 (Val 5),
    ...``; empty without any.
    """
    total = 0
    splits: list[str] = []
    for split, numbers in counted.items():
        number = sum(numbers.values())
        labels = [f"{label} {support}" for label, support in numbers.items()]
        splits.append(f"{split} {number} ({', '.join(labels)})")
        total += number
    if not total:
        return ""
    mentions = plural(total, "mention")
    words = "that units, tokens or decoding cannot express, in no score"
    return f"{total} {mentions} {words}: {'; '.join(splits)}"
