"""Every count of the specs holds on the real files, and the counts of the release notes beside them."""

from __future__ import annotations

from pathlib import Path

import pytest

from biobench.data.catalog import list_tasks, load_task
from biobench.data.load import load_data
from biobench.data.validate import find, validate_task
from biobench.errors import DataFormatError

pytestmark = pytest.mark.real

AT_HAND = ["ncbi_disease_single", "anatem_single", "bc5cdr", "hoc", "gad"]


@pytest.mark.parametrize("name", AT_HAND)
def test_declared_counts_hold(name: str, data_dir: Path) -> None:
    found = validate_task(load_task(name), data_dir)
    assert found.state == "ready"
    assert found.problems == []


def test_every_task_with_data_declares_counts(data_dir: Path) -> None:
    for task in list_tasks():
        if find(task, data_dir) is not None:
            assert set(task.spec.counts) == {"train", "validation", "test"}, task.id


def test_surfaces_and_tags_agree_on_real_tokens(data_dir: Path) -> None:
    data = load_data(load_task("bc5cdr"), data_dir)
    for d in data.test:
        assert len(d.tokens) == len(d.tags)
        for (a, b), (c, _) in zip(d.tokens, d.tokens[1:], strict=False):
            assert d.text[b:c] == " "
            assert d.text[a:b].strip()
        for span in d.spans:
            assert any(span.start == a for a, _ in d.tokens)
            assert any(span.end == b for _, b in d.tokens)


def test_the_two_releases_of_ncbi_disease_agree(data_dir: Path) -> None:
    task = load_task("ncbi_disease_single")
    mtl = load_data(task, data_dir)
    only = load_task("ncbi_disease_single", ["sources.0.folder=not_there"])
    scibert = load_data(only, data_dir)
    assert scibert.source == "scibert"
    assert [len(scibert.documents[s]) for s in scibert.documents] == [len(mtl.documents[s]) for s in mtl.documents]
    assert sum(len(d.spans) for d in scibert.test) == sum(len(d.spans) for d in mtl.test) == 960


def test_iob1_release_of_bc5cdr(data_dir: Path, tmp_path: Path) -> None:
    """Counts of the release: 3,942/3,949/4,139 sentences in 500 documents, 9,270/9,455/9,662 mentions."""
    spec = tmp_path / "x.yaml"
    text = load_task("bc5cdr").path.read_text(encoding="utf-8")
    head, _, rest = text.partition("source:")
    _, _, tail = rest.partition("labels: [Chemical, Disease]")
    tail, _, _ = tail.partition("counts:")
    spec.write_text(
        head
        + "source:\n  id: s\n  folder: scibert_bc5cdr\n"
        + "  files: {train: train.txt, validation: dev.txt, test: test.txt}\n"
        + "reader: {format: iob, columns: [token, pos, chunk, tag], separator: whitespace, scheme: IOB1}\n"
        + "labels: [Entity]"
        + tail,
        encoding="utf-8",
    )
    data = load_data(load_task(spec), data_dir)
    counted = [(len(v), sum(len(d.spans) for d in v), len({d.group for d in v})) for v in data.documents.values()]
    assert counted == [(3942, 9270, 500), (3949, 9455, 500), (4139, 9662, 500)]


def test_gad_fold_and_published_split_agree_on_the_rows(data_dir: Path) -> None:
    data = load_data(load_task("gad"), data_dir)
    assert all("@GENE$" in d.text and "@DISEASE$" in d.text for split in data.documents.values() for d in split)


def test_a_part_of_hoc_is_refused(data_dir: Path, tmp_path: Path) -> None:
    for kind in ("text", "labels"):
        (tmp_path / "hallmarks_of_cancer" / kind).mkdir(parents=True)
        for path in sorted((data_dir / "hallmarks_of_cancer" / kind).glob("*.txt"))[:20]:
            (tmp_path / "hallmarks_of_cancer" / kind / path.name).write_bytes(path.read_bytes())
    with pytest.raises(DataFormatError, match="have no document"):
        load_data(load_task("hoc"), tmp_path)
