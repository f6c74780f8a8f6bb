"""The needle generator: same seed same bytes, balance, nothing shared by two splits, no answer in
the form.
"""

import json
import re
from collections import Counter
from collections.abc import Callable
from itertools import combinations
from operator import ne
from pathlib import Path

import pytest

from biobench.data.catalog import LoadedTask, load_task
from biobench.data.load import load_data, subset
from biobench.data.readers.needle.facts import TEMPLATES
from biobench.errors import DataFormatError, SpecError
from biobench.schema.document import Document
from biobench.schema.needle import ABSENT, PRESENT, GridCell, cell_of
from tests.helpers.needle_make import GENERATED, needle_spec

SMALL = "lengths: [128, 256], notes: 300, examples: {train: 192, validation: 48, test: 96}"
Make = Callable[..., LoadedTask]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """Write a needle spec and load it."""

    def write(options: str = SMALL, language: str = "fr", source: str = GENERATED) -> LoadedTask:
        return load_task(needle_spec(tmp_path, options, language=language, source=source))

    return write


def documents(task: LoadedTask, data: Path | None = None) -> list[Document]:
    read = load_data(task, data)
    return [*read.train, *read.validation, *read.test]


def cell(document: Document) -> GridCell:
    found = cell_of(document.id)
    assert found is not None
    return found


def test_the_same_seed_gives_the_same_bytes_everywhere(make):
    drawn, redrawn = load_data(make(), None), load_data(make(), None)
    assert drawn.documents == redrawn.documents
    # Written down once: another machine, system or Python must come to the same examples.
    assert drawn.hash == "ace501b979dde96420af7be90b9367aea086c81fa60635dedee610e89207cba0"
    assert (
        load_data(make(language="en"), None).hash
        == "dd2251722e2e63fc85049fbeedb069233152883e450818ede33fd28780c3e4ce"
    )
    assert load_data(make(SMALL + ", seed: 43"), None).hash != drawn.hash


def test_every_cell_is_filled_alike_and_labels_are_balanced(make):
    data = load_data(make(), None)
    for name, filled, per_cell in (("train", 48, 4), ("validation", 24, 2), ("test", 48, 2)):
        split = data.documents[name]
        assert Counter(d.labels[0] for d in split) == dict.fromkeys(
            (PRESENT, ABSENT), len(split) // 2
        )
        cells = Counter(cell(d) for d in split)
        assert (len(cells), set(cells.values())) == (filled, {per_cell})
        for axis in range(3):
            counts = Counter(cell(d)[axis] for d in split)
            assert max(counts.values()) - min(counts.values()) <= 2


@pytest.mark.parametrize("language", ["fr", "en"])
def test_splits_share_neither_facts_nor_haystacks_nor_examples(make, language):
    facts: dict[str, set[str]] = {}
    hay: dict[str, set[str]] = {}
    seen = set()
    for d in documents(make(language=language)):
        facts.setdefault(d.split, set()).update((d.query, d.plan.needle))
        hay.setdefault(d.split, set()).update(d.plan.haystack)
        seen.add((d.query, d.plan.needle))
    for kind in (facts, hay):
        for first, second in combinations(kind.values(), 2):
            assert first.isdisjoint(second)
    assert len(seen) == 192 + 48 + 96


def test_a_pair_differs_in_the_needle_alone(make):
    groups: dict[str, list[Document]] = {}
    for d in documents(make()):
        groups.setdefault(d.group, []).append(d)
    for pair in groups.values():
        yes, no = sorted(pair, key=lambda d: d.labels, reverse=True)
        assert yes.labels == (PRESENT,)
        assert yes.plan.needle == yes.query == no.query != no.plan.needle
        assert yes.plan._replace(needle="") == no.plan._replace(needle="")
        assert cell(yes) == cell(no)


def slots_changed(document: Document, language: str) -> int:
    """In how many slots the fact in the document differs from the queried one."""
    text, slots = TEMPLATES[language][cell(document).template]
    pattern = re.escape(text)
    for name, lexicon in slots.items():
        values = "|".join(map(re.escape, lexicon))
        pattern = pattern.replace(re.escape(f"{{{name}}}"), f"({values})")
    queried, stated = (
        re.fullmatch(pattern, fact) for fact in (document.query, document.plan.needle)
    )
    return sum(map(ne, queried.groups(), stated.groups()))


@pytest.mark.parametrize("language", ["fr", "en"])
def test_negatives_change_every_slot(make, language):
    for d in documents(make(language=language)):
        slots = len(TEMPLATES[language][cell(d).template][1])
        assert slots_changed(d, language) == (0 if d.labels == (PRESENT,) else slots)


def test_word_lengths_are_exact(make):
    for d in documents(make(SMALL + ", fit: words")):
        assert len(d.text.split()) == cell(d).length


def test_haystacks_from_a_folder_of_text_and_json(make, tmp_path):
    folder = tmp_path / "data" / "texts"
    folder.mkdir(parents=True)
    for i in range(40):
        sentences = [f"Phrase {i} {j} de la note du jour." for j in range(40)]
        text = f"Compte rendu {i}. " + " ".join(sentences)
        if i % 2:
            (folder / f"n{i}.txt").write_text(text, encoding="utf-8")
        else:
            (folder / f"n{i}.json").write_text(json.dumps({"text": text}), encoding="utf-8")
    (folder / "copy.txt").write_bytes((folder / "n1.txt").read_bytes())
    options = "haystack: files, lengths: [128], examples: {train: 48, validation: 16, test: 32}"
    task = make(options, source="{id: hay, folder: texts, files: {texts: '*'}}")
    found = documents(task, tmp_path / "data")
    used = {name for d in found if d.plan for name in d.plan.haystack}
    assert used <= {f"n{i}" for i in range(40)} | {"copy"}
    assert not {"copy", "n1"} <= used, "one text under two names is one document"
    (folder / "n0.json").write_text("[1]")
    with pytest.raises(DataFormatError, match="holds no text"):
        load_data(task, tmp_path / "data")


@pytest.mark.parametrize(
    ("options", "language", "words"),
    [
        (
            "lengths: [8192], notes: 60, examples: {train: 4, validation: 4, test: 4}",
            "fr",
            "shorter than 8192 words",
        ),
        (
            "lengths: [128], notes: 60, examples: {train: 20000, validation: 4, test: 4}",
            "fr",
            "no unused facts",
        ),
        (SMALL, "de", "no fact templates for language 'de'"),
    ],
)
def test_too_little_text_and_too_many_examples_are_said(options, language, words, make):
    with pytest.raises(DataFormatError, match=words):
        load_data(make(options, language), None)


def test_lengths_must_rise(make):
    with pytest.raises(SpecError, match="lengths must rise"):
        make("lengths: [512, 256]")


@pytest.mark.parametrize("limit", [1, 2, 25, 64, 191, 192, 1000])
def test_a_limit_keeps_pairs_whole(make, limit):
    """Half pairs would let a model that always says the same leave 50%, and facts stand for their
    answer.
    """
    task = make()
    few = load_data(task, None, limit=limit)
    for split, size in (("train", 192), ("validation", 48), ("test", 96)):
        drawn = few.documents[split]
        wanted = round(size * min(1, limit / 192))
        assert len(drawn) == max(2, wanted - wanted % 2)
        pairs = {d.group for d in drawn}
        sides = {(d.group, d.labels) for d in drawn}
        assert sides == {(pair, (side,)) for pair in pairs for side in (PRESENT, ABSENT)}
    assert few.hash == load_data(task, None).hash
    assert set(load_data(task, None, limit=max(1, limit // 2)).train) <= set(few.train)
    half = subset(few.train, 0.5)
    assert set(Counter(d.group for d in half).values()) == {2}
    assert set(half) <= set(few.train)
