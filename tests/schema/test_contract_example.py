"""The example spec of the public contract, the forms that it may take, and declared deviations from
a protocol.
"""

from pathlib import Path

import pytest

from biobench.data.catalog import load_task
from biobench.data.hashing import task_hash
from biobench.data.load import load_data
from biobench.errors import SpecError
from biobench.schema.training import Head, SpanOptions
from biobench.schema.yaml12 import parse

EXAMPLE = """\
id: my_task              # [a-z0-9_]+
version: 1
name: My task
language: en             # ISO 639-1
type: token_ner          # token_ner | span_ner | single_label | multi_label | relation | text_pair | regression | multiple_choice | needle
corpus: ncbi_disease     # tasks on the same texts share it; default: id
sources:                 # first one at hand is used; its id enters the run's key
  - id: mtl
    folder: mtl_ncbi_disease_iob            # below --data-dir
    files: {train: train.tsv, validation: devel.tsv, test: test.tsv}
    url: null            # or {url, sha256, unpack}, or hub: {repo, revision, path}
    reader: {format: iob, columns: [token, tag], scheme: IOB2, decode: strict}
labels: [Disease]        # or a rule: {top_k: 30, ...}
splits: official         # or {ratios: [0.8, 0.1, 0.1], seed: 42, method: ...}
unit: sentence           # sentence | line | document
seeds: 42-46
protocol: {max_length: 512, long_documents: truncate}     # truncate | stride
training: {epochs: 20, learning_rate: 5e-5, batch_size: 16, weight_decay: 0.01, warmup_ratio: 0.0}   # encoder: trained | frozen
head: {kind: token}      # token | sequence | span, with options (pooling, ...)
metric: {primary: macro_f1, paper: micro_f1}
gate: {expect: text_informative}
access: open             # open | registration | agreement
licence: CC BY 4.0
homepage: https://...
citation: ...
"""  # noqa: E501
LISTED = EXAMPLE[EXAMPLE.index("sources:") : EXAMPLE.index("labels:")]
INLINE = """\
source:
  folder: mtl_ncbi_disease_iob
  files: {train: train.tsv, validation: devel.tsv, test: test.tsv}
reader: {format: iob, columns: [token, tag], scheme: IOB2, decode: strict}
"""


def write(folder: Path, text: str) -> Path:
    (folder / "my_task.yaml").write_text(text, encoding="utf-8")
    return folder / "my_task.yaml"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    (tmp_path / "mtl_ncbi_disease_iob").mkdir()
    for name in ("train", "devel", "test"):
        rows = f"gout\tB-Disease\nin\tO\n{name}\tO\n\n"
        (tmp_path / "mtl_ncbi_disease_iob" / f"{name}.tsv").write_text(rows, encoding="utf-8")
    return tmp_path


def test_the_example_loads_as_it_stands(data):
    task = load_task(write(data, EXAMPLE))
    assert load_data(task, data).source == "mtl"


def test_a_single_source_is_local_when_it_has_no_id(data):
    task = load_task(write(data, EXAMPLE.replace(LISTED, INLINE)))
    assert load_data(task, data).source == "local"
    named = load_task(
        write(data, EXAMPLE.replace(LISTED, INLINE.replace("source:\n", "source:\n  id: local\n")))
    )
    assert task_hash(named, "local") == task_hash(task, "local"), (
        "written or not, it is the same task"
    )
    alone = load_task(write(data, EXAMPLE.replace("  - id: mtl\n    folder", "  - folder")))
    assert load_data(alone, data).source == "local"


def test_of_several_sources_each_needs_an_id(tmp_path):
    second = (
        "  - folder: other\n    files: {all: all.tsv}\n    reader: {format: iob, columns: "
        "[token, tag]}\n"
    )
    with pytest.raises(SpecError, match=r"sources\.1\.id is missing") as caught:
        load_task(write(tmp_path, EXAMPLE.replace("labels:", second + "labels:", 1)))
    assert caught.value.line == 13, "the line of the source that has none"


@pytest.mark.parametrize(
    "address", ["unknown", "www.example.org", "ftp://example.org", "https://", "https://a b"]
)
def test_a_homepage_is_an_address(address, tmp_path):
    with pytest.raises(SpecError, match="should match pattern") as caught:
        load_task(write(tmp_path, EXAMPLE.replace("https://...", f'"{address}"')))
    assert caught.value.line == EXAMPLE[: EXAMPLE.index("homepage")].count("\n") + 1


def test_deviations_describe_and_enter_no_hash(tmp_path):
    text = load_task("gad").path.read_text(encoding="utf-8")
    start, end = text.index("deviations:\n"), text.index("counts:\n")
    bare = tmp_path / "gad.yaml"
    bare.write_text(text[:start] + text[end:], encoding="utf-8")
    assert load_task(bare).spec.deviations == []
    assert task_hash(load_task(bare), "fold1") == task_hash(load_task("gad"), "fold1")


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ('{aspect: patiense, here: "3", compared: "none"}', "patiense"),
        ('{aspect: patience, here: "3"}', "compared"),
        (
            '{aspect: patience, here: "3", compared: "5"}\n  - {aspect: patience, here: "4", '
            'compared: "5"}',
            "twice",
        ),
    ],
)
def test_a_wrong_entry_is_refused_with_its_line(tmp_path, entry, said):
    text = load_task("demo_topic").path.read_text(encoding="utf-8")
    spec = tmp_path / "demo_topic.yaml"
    spec.write_text(text + f"deviations:\n  - {entry}\n", encoding="utf-8")
    with pytest.raises(SpecError, match=said) as caught:
        load_task(spec)
    assert caught.value.file == str(spec)
    assert caught.value.line


def test_a_span_head_whose_options_are_null_has_the_default_ones():
    written = parse("{kind: span, span: null}").data
    assert Head.model_validate(written) == Head(kind="span", span=SpanOptions())
