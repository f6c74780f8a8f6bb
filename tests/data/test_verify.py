"""Verification, near-duplicates, bundles, overlap with training text, and the counts of the real
corpora.
"""

import tarfile
import unicodedata
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from biobench.data.bundle import bundle
from biobench.data.catalog import LoadedTask, list_tasks, load_task
from biobench.data.checks.findings import Finding
from biobench.data.checks.similar import near, normalised, same
from biobench.data.load import load_data
from biobench.data.overlap import N, overlap
from biobench.data.verify import verify
from biobench.errors import ModelError, SpecError, UsageError
from biobench.schema.document import Document
from tests.helpers.generators import cos, deid
from tests.helpers.spec_make import local, write_spec

WORDS = st.lists(st.sampled_from([f"w{i}" for i in range(12)]), min_size=1, max_size=12).map(
    " ".join
)


def jaccard(a: str, b: str) -> float:
    x, y = set(a.split()), set(b.split())
    return len(x & y) / len(x | y)


@given(st.lists(WORDS, max_size=8), st.lists(WORDS, max_size=8))
@settings(max_examples=60)
def test_near_duplicates_are_those_of_all_pairs(left, right):
    expected = {
        i
        for i, a in enumerate(left)
        if any(
            min(len(set(a.split())), len(set(b.split()))) >= 5 and jaccard(a, b) >= 0.8
            for b in right
        )
    }
    assert near(left, right) == sorted(expected)


def test_verbatim_ignores_case_and_white_space():
    assert same(["A  b\nc", "x", ""], ["y", "a B c", "a b c", ""]) == [0]
    assert normalised(" A\tb ") == "a b"


def tokens_task(make_task: Callable[..., LoadedTask], folder: Path, **more: str) -> LoadedTask:
    shared = "Mild asthma was seen in all five young children .\tX"
    rows = {
        "train": [
            "Gout came back twice .\tX",
            shared,
            "Gout came back twice .\tX",
            "Nothing at all was found .\tX",
        ],
        "devel": [shared],
        "test": [
            "Severe asthma was seen in all five young children .\tX",
            "Gout CAME back  twice .\tX",
        ],
    }
    (folder / "data").mkdir(parents=True)
    for name, lines in rows.items():
        body = "".join(f"{line.partition(chr(9))[0]}\tyes\n" for line in lines)
        (folder / "data" / f"{name}.tsv").write_text("text\tlabel\n" + body, encoding="utf-8")
    return make_task(
        type="single_label",
        labels="[yes, no]",
        reader="{format: tsv, columns: {text: text, label: label}}",
        **more,
    )


def test_findings_alarm_once(make_task, tmp_path):
    report = verify(tokens_task(make_task, tmp_path / "a"), tmp_path / "a")
    assert {f.name: f.number for f in report.findings} == {
        "duplicates.test-train": 1,
        "duplicates.validation-train": 1,
        "near.test-train": 1,
        "near.validation-train": 1,
        "near.test-validation": 1,
        "twice.train": 1,
        "unsupported.test": 1,
    }
    assert report.clean, "an official release may hold what is found"
    assert len(report.as_dict()["alarms"]) == 7
    assert report.findings[0].examples == ["test-2"]
    known = "findings: {" + ", ".join(f"{f.name}: {f.number}" for f in report.findings) + "}"
    again = verify(tokens_task(make_task, tmp_path / "b", more=known), tmp_path / "b")
    assert again.clean
    assert again.as_dict()["alarms"] == []
    assert again.data_hash == report.data_hash
    fewer = known.replace("twice.train: 1", "twice.train: 0")
    assert verify(tokens_task(make_task, tmp_path / "c", more=fewer), tmp_path / "c").as_dict()[
        "alarms"
    ] == ["twice.train"]


def test_a_bundle_holds_no_file_from_elsewhere(tmp_path):
    """A spec of unknown origin and a model's folder are not followed out of their folders."""
    (tmp_path / "private").write_text("a key")
    files = "{all: all.txt}"
    spec = write_spec(
        tmp_path / "evil.yaml",
        source=local("corpus", files, "  reader: {format: tsv, columns: {text: a, label: b}}"),
        type="single_label",
        splits="{ids_file: ../private}",
    )
    with pytest.raises(SpecError, match="leaves its folder"):
        load_task(spec)
    model = tmp_path / "model"
    (model / "inside").mkdir(parents=True)
    (model / "inside" / "key").symlink_to(tmp_path / "private")
    with pytest.raises(ModelError, match="is a link that leaves the model's folder"):
        bundle([load_task("demo_ner")], tmp_path, tmp_path / "one.tar", model=model)


@pytest.mark.real
def test_members_of_bundles_of_all_tasks_stay_below_the_bundle(tmp_path, data_dir):
    bundle(list_tasks(), data_dir, tmp_path / "all.tar")
    with tarfile.open(tmp_path / "all.tar") as archive:
        names = archive.getnames()
    assert "tasks/hoc_blurb_split_pmids.json" in names
    assert [name for name in names if ".." in name.split("/") or name.startswith("/")] == []


def test_bundle_holds_what_a_run_needs_and_no_agreement_data(tmp_path):
    data = tmp_path / "store"
    cos(data, snippets=110, duplicates=5)
    deid(data, records=60)
    model = tmp_path / "tiny"
    model.mkdir()
    (model / "config.json").write_text("{}")
    tasks = [load_task(n) for n in ("cos", "deid", "gad", "demo_ner")]
    packed = bundle(tasks, data, tmp_path / "one.tar", model=model)
    assert packed.tasks == ["cos", "demo_ner"]
    assert "--include-agreement" in packed.skipped["deid"]
    assert "no data below" in packed.skipped["gad"]
    with tarfile.open(packed.path) as archive:
        names = archive.getnames()
        archive.extractall(tmp_path / "there", filter="data")
    assert {"data/cos/snippet1_100.ann", "model/tiny/config.json"} <= set(names)
    assert not any("deid" in name for name in names)
    moved = load_data(
        load_task(tmp_path / "there" / "tasks" / "cos.yaml"), tmp_path / "there" / "data"
    )
    assert moved.hash == load_data(load_task("cos"), data).hash
    bundle(tasks, data, tmp_path / "two.tar", model=model)
    assert (tmp_path / "two.tar").read_bytes() == (tmp_path / "one.tar").read_bytes()
    assert "deid" in bundle(tasks, data, tmp_path / "three.tar", include_agreement=True).tasks
    with pytest.raises(UsageError, match="exists"):
        bundle(tasks, data, tmp_path / "one.tar")
    with pytest.raises(UsageError, match="no task is left"):
        bundle([load_task("deid")], data, tmp_path / "four.tar")
    with pytest.raises(ModelError, match="not a folder"):
        bundle(tasks, data, tmp_path / "five.tar", model=tmp_path / "nowhere")
    assert not list(tmp_path.glob("*.part"))


def documents(*texts: str) -> list[Document]:
    return [
        Document(id=str(i), group=str(i), text=text, split="test") for i, text in enumerate(texts)
    ]


def test_overlap_counts_exact_texts_and_ngrams():
    long = " ".join(f"word{i}" for i in range(20))
    task = {
        "toy": {
            "validation": documents("short and seen", "short and new"),
            "test": documents(long, long[::-1]),
        }
    }
    corpus = [f"Before it.  {long.upper()} after it.", "Short  AND seen", "other", ""]
    validation, test = overlap(corpus, task)[0].values()
    assert (validation.exact, validation.short, validation.ngrams) == (1, 2, 0)
    assert (test.exact, test.touched, test.ngrams_seen) == (0, 1, 20 - N + 1)
    with pytest.raises(UsageError, match="holds no text"):
        overlap([" "], task)


def test_overlap_does_not_hang_on_the_encoding_of_accents_or_ligatures():
    text = " ".join(["fièvre", "œdème", "cœur", "ﬁbrose", "ÉTÉ"] * 4)
    task = {
        "toy": {"validation": documents(""), "test": documents(unicodedata.normalize("NFC", text))}
    }
    for corpus in (
        unicodedata.normalize("NFD", text),
        text.lower(),
        unicodedata.normalize("NFKC", text).upper(),
    ):
        blank, test = overlap([corpus, " "], task)[0].values()
        assert (test.exact, test.touched, test.ngrams_seen) == (1, 1, test.ngrams)
        assert blank.exact == 0, "a blank record is no copy of a blank document"


@pytest.mark.real
@pytest.mark.parametrize("task", ["gad", "hoc", "quaero_emea", "frenchmedmcqa_t1"])
def test_real_corpora_hold_only_known_findings(task, data_dir):
    """Those of the facts sheets; hashes and counts of every corpus stand in tests/golden."""
    report = verify(load_task(task), data_dir)
    assert report.clean, report.problems
    assert report.as_dict()["alarms"] == []
    known = {f.name: f.number for f in report.findings}
    sheet = {"gad": (8, 39), "hoc": (6, 4)}.get(task)
    if sheet is not None:
        assert (known["duplicates.test-train"], known.get("duplicates.validation-train")) == sheet


def test_a_long_example_of_a_finding_loses_its_middle():
    examples = ["note-7", f"train/{'0123456789abcdef' * 4}"]
    finding = Finding("twice.train", 2, 0, "texts repeat another", examples, of_the_corpus=True)
    shown = "train/0123456789abcd…89abcdef"
    assert finding.line == f"twice.train: 2 texts repeat another (note-7, {shown})"
