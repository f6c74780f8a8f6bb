"""What `tasks new` makes of files as people have them: content decides, each way to read it is
tried on all of the data, and what reads badly is refused with its line.
"""

import gzip
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from biobench.data.catalog import LoadedTask, load_task
from biobench.data.load import load_data
from biobench.data.scaffold import Draft, scaffold
from biobench.errors import DataFormatError, UsageError

Rows = list[dict[str, Any]]
SPLITS = ("train", "dev", "test")


def written(draft: Draft) -> LoadedTask:
    """The drafted task, loaded."""
    spec = draft.data_dir / "made.yaml"
    spec.write_text(draft.text, encoding="utf-8")
    return load_task(spec)


def in_splits(folder: Path, name: str, content: str) -> Path:
    """The content, with the split's name in place of @, as a file of each split."""
    folder.mkdir(parents=True, exist_ok=True)
    for split in SPLITS:
        path = folder / name.format(split)
        path.write_text(content.replace("@", split), encoding="utf-8")
    return folder


def in_one(path: Path, content: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content, encoding="utf-8")
    return path


def lines_of(rows: Rows) -> str:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def labelled(count: int = 30) -> Rows:
    return [
        {"text": f"Patient {i} has pain and a cough.", "label": "routine" if i % 3 else "urgent"}
        for i in range(count)
    ]


def mentions_of(task: LoadedTask) -> list[str]:
    """Surfaces with labels of the test split."""
    data = load_data(task, task.folder)
    return [f"{d.text[s.start : s.end]}/{s.label}" for d in data.test for s in d.spans]


# Token files


IOB1 = "gout\tI-X\nthen\tO\n\nflu\tB-X\nfever\tI-X\nand\tO\nasthma\tI-X\n\n"


@pytest.mark.parametrize(
    ("content", "scheme", "decode", "mentions"),
    [
        (IOB1, "IOB1", "strict", ["gout/X", "flu fever/X", "asthma/X"]),
        ("gout\tB-X\nflu\tB-X\nfever\tI-X\n\n", "IOB2", "strict", ["gout/X", "flu fever/X"]),
        # Most mentions begin with B-, one does not: lenient alone loses nothing.
        (
            "gout\tB-X\nthen\tO\nflu\tB-X\nof\tO\nasthma\tI-X\n\n",
            "IOB2",
            "lenient",
            ["gout/X", "flu/X", "asthma/X"],
        ),
        (
            "hay\tI-X\nflu\tB-X\nthen\tO\ngout\tI-Y\n\n",  # strict IOB2 drops all of Y
            "IOB1",
            "strict",
            ["hay/X", "flu/X", "gout/Y"],
        ),
        ("hay\tB-X\nfever\tE-X\nflu\tS-X\n\n", "IOBES", "strict", ["hay fever/X", "flu/X"]),
    ],
)
def test_the_scheme_is_the_one_that_loses_no_mention(content, scheme, decode, mentions, tmp_path):
    draft = scaffold(in_splits(tmp_path / "tags", "{}.tsv", content), "made")
    task = written(draft)
    options = task.options["local"]
    assert (options.scheme, options.decode) == (scheme, decode)
    assert mentions_of(task) == mentions
    assert f"mentions: {3 * len(mentions)} kept, 0 dropped" in draft.detected
    assert any("mentions begin with I-" in line for line in draft.detected)


@pytest.mark.parametrize(
    ("tags", "mentions"),
    [
        ("B I O B", ["hay fever/Entity", "flu/Entity"]),
        ("b i o b", ["hay fever/Entity", "flu/Entity"]),
        ("B_X I_X O B_Y", ["hay fever/X", "flu/Y"]),
        ("X-B X-I O Y-B", ["hay fever/X", "flu/Y"]),
        ("b-x i-x o b-y", ["hay fever/x", "flu/y"]),
        ("B-X I-X 0 B-Y", ["hay fever/X", "flu/Y"]),
        ("B-X I-X OUTSIDE B-Y", ["hay fever/X", "flu/Y"]),
        ("B-X I-X NONE B-Y", ["hay fever/X", "flu/Y"]),
        ("X X O Y", ["hay fever/X", "flu/Y"]),
    ],
)
def test_tags_of_any_spelling_are_tags(tags, mentions, tmp_path):
    words = ["hay", "fever", "or", "flu", "or", "not", "or", "none"]
    outside = tags.split()[2]
    rows = zip(words, [*tags.split(), *[outside] * 4], strict=True)
    content = "".join(f"{word}\t{tag}\n" for word, tag in rows) + "\n"
    task = written(scaffold(in_splits(tmp_path / "tags", "{}.tsv", content), "made"))
    assert task.spec.type == "token_ner"
    assert mentions_of(task) == mentions


def test_comment_lines_and_numbered_words_are_no_words(tmp_path):
    content = "# sent_id = @ 1\n1\tgout\tNOUN\tB-X\n2\t#\tSYM\tO\n\n"
    task = written(scaffold(in_splits(tmp_path / "conllu", "{}.conllu", content), "made"))
    assert [d.text for d in load_data(task, tmp_path).test] == ["gout #"]


def test_a_ragged_line_of_a_token_file_is_named(tmp_path):
    content = "gout\tB-X\nis\tO\n\n" * 8 + "bad\tO\tline\n"
    with pytest.raises(DataFormatError, match=r"train\.tsv:25: the row has 3 fields"):
        scaffold(in_splits(tmp_path / "tags", "{}.tsv", content), "made")


def test_lists_of_tags_of_any_scheme(tmp_path):
    rows = [{"tokens": ["hay", "fever", "and", "flu"], "tags": ["I", "I", "O", "I"]}] * 3
    folder = in_splits(tmp_path / "lists", "{}.json", json.dumps(rows))
    draft = scaffold(folder, "made")
    assert "layout: list, tokens: tokens, tags: tags, scheme: IOB1" in draft.text
    task = written(draft)
    assert (task.spec.type, mentions_of(task)[:2]) == (
        "token_ner",
        ["hay fever/Entity", "flu/Entity"],
    )


# Delimited rows


@pytest.mark.parametrize("header", [",text,label", "text,label,", '"",text,label'])
def test_a_header_may_have_a_blank_cell(header, tmp_path):
    blank_last = header.endswith(",")
    rows = [
        f'"Patient {i}, pain",{label},x{i}' if blank_last else f'{i},"Patient {i}, pain",{label}'
        for i, label in enumerate(["routine", "urgent"] * 15)
    ]
    path = in_one(tmp_path / "all.csv", "\n".join([header, *rows]) + "\n")
    draft = scaffold(path, "made")
    assert "labels: [routine, urgent]" in draft.text
    assert "documents: train 24, validation 3, test 3" in draft.detected
    assert any("(without a name)" in line for line in draft.detected)


def test_a_header_with_a_name_twice_is_read_by_numbers(tmp_path):
    rows = "".join(f"x{i}\tA long text {i}\t{'ab'[i % 2]}\n" for i in range(30))
    draft = scaffold(in_one(tmp_path / "all.tsv", "note\tnote\tlabel\n" + rows), "made")
    assert "header: true, columns: {text: 1, label: 2}" in draft.text
    assert sum(c["documents"] for c in written(draft).spec.counts.values()) == 30


def test_each_file_has_its_own_header(tmp_path):
    rows = [(f"A sentence {i} of @", "01"[i % 2]) for i in range(20)]
    plain = "".join(f"{text}\t{label}\n" for text, label in rows)
    folder = in_splits(tmp_path / "gad", "{}.tsv", plain)
    headed = "".join(f"{i}\t{text}\t{label}\n" for i, (text, label) in enumerate(rows))
    (folder / "test.tsv").write_text("index\tsentence\tlabel\n" + headed, encoding="utf-8")
    task = written(scaffold(folder, "made"))
    data = load_data(task, tmp_path)
    assert (data.train[0].text, data.train[0].labels) == ("A sentence 0 of train", ("0",))
    assert (data.test[1].text, data.test[1].labels) == ("A sentence 1 of @", ("1",))
    # Other names, and another order.
    named = "".join(f"{label}\t{text}\n" for text, label in rows)
    for split, header in (("train", "class\ttext"), ("dev", "class\ttext"), ("test", "gold\tnote")):
        (folder / f"{split}.tsv").write_text(f"{header}\n{named}", encoding="utf-8")
    task = written(scaffold(folder, "made"))
    assert load_data(task, tmp_path).test[1].labels == ("1",)
    assert "split_layout: {test: {header: true, columns: {text: note, label: gold}}}" in str(
        (tmp_path / "made.yaml").read_text(encoding="utf-8")
    )


@pytest.mark.parametrize(("sign", "ending"), [("\t", "tsv"), (",", "csv")])
def test_a_quote_that_swallows_rows_is_a_plain_sign(sign, ending, tmp_path):
    texts = [f"Note {i} on pain." for i in range(20)]
    texts[3], texts[6] = '"Chest pain since Monday', 'he said it is fine"'
    rows = [f"{i}{sign}{text}{sign}{'ab'[i % 2]}" for i, text in enumerate(texts)]
    path = in_one(
        tmp_path / f"all.{ending}", "\n".join([sign.join(["id", "text", "label"]), *rows])
    )
    draft = scaffold(path, "made")
    assert "quoting: none" in draft.text
    assert "documents: train 16, validation 2, test 2" in draft.detected


def test_a_quoted_text_of_several_lines_is_a_finding(tmp_path):
    rows = [f'"Note {i}, on pain.\nNext line",{"ab"[i % 2]}' for i in range(20)]
    path = in_one(tmp_path / "all.csv", "\n".join(["text,label", *rows]) + "\n")
    draft = scaffold(path, "made")
    assert "quoting" not in draft.text
    (line,) = [line for line in draft.detected if "quotes" in line]
    assert line.startswith("finding: quotes: 20 rows whose quoted field goes on over several lines")
    assert "all.csv lines 26 to 27" in line


# JSON and parquet


@pytest.mark.parametrize("name", ["{}.json", "{}.txt", "{}.data"])
def test_json_is_known_by_its_content(name, tmp_path):
    contents = {
        "lines": lines_of(labelled()),
        "list": json.dumps(labelled(), indent=1),
        "keyed": json.dumps({f"p{i}": row for i, row in enumerate(labelled())}),
    }
    for layout, content in contents.items():
        file = in_one(tmp_path / layout / name.format("all"), content)
        task = written(scaffold(file, "made"))
        assert (task.options["local"].layout, task.spec.labels) == (layout, ["routine", "urgent"])


@pytest.mark.parametrize(
    "mention",
    [
        {"id": 3, "label": "Drug", "start_offset": 0, "end_offset": 7},
        {"start": 0, "end": 7, "labels": ["Drug"]},
        {"begin": 0, "end": 7, "type": "Drug"},
        [0, 7, "Drug"],
    ],
)
def test_mentions_of_annotation_tools(mention, tmp_path):
    rows = [{"text": f"Aspirin {i} for gout.", "entities": [mention]} for i in range(12)]
    rows[3]["entities"] = []
    task = written(scaffold(in_one(tmp_path / "all.jsonl", lines_of(rows)), "made"))
    assert (task.spec.type, task.spec.labels) == ("span_ner", ["Drug"])
    assert set(mentions_of(task)) == {"Aspirin/Drug"}


MULTI_HOT = ([1.0, 0.0, 0.0, 1.0], [0, 1, 1])
WRITTEN_LISTS = ("['a', 'b']", "[1 0 0]", '{"a": 1}')


@pytest.mark.parametrize(
    "label", [*MULTI_HOT, {"choices": ["a"]}, [["a", "b"]], 0.5, *WRITTEN_LISTS]
)
def test_what_is_no_label_is_refused(label, tmp_path):
    rows = labelled()
    rows[4]["label"] = label
    with pytest.raises(DataFormatError, match=r"all\.jsonl:5: is no label \(column 'label'\)"):
        scaffold(in_one(tmp_path / "all.jsonl", lines_of(rows)), "made")


def test_a_word_in_brackets_is_a_label(tmp_path):
    rows = [row | {"label": f"[{row['label']}]"} for row in labelled()]
    task = written(scaffold(in_one(tmp_path / "all.jsonl", lines_of(rows)), "made"))
    assert task.spec.labels == ["[routine]", "[urgent]"]


@pytest.mark.parametrize(
    "row",
    [{"tokens": ["@", "flu"], "tags": ["O", "B-X"]}, {"text": "@ flu", "ents": [[2, 5, "X"]]}],
)
def test_tokens_and_mentions_by_their_ids(row, tmp_path):
    content = json.dumps({f"note-{i}": row for i in range(12)})
    task = written(scaffold(in_one(tmp_path / "keyed" / "all.json", content), "made"))
    assert set(mentions_of(task)) == {"flu/X"}
    assert {d.id.partition("-")[0] for d in load_data(task, tmp_path).train} == {"note"}


def table_of(rows: Rows, column: str, names: list[str], *, listed: bool) -> pa.Table:
    """A table of the hub whose integers have names."""
    feature: dict[str, Any] = {"names": names, "_type": "ClassLabel"}
    feature = {"feature": feature, "_type": "Sequence"} if listed else feature
    info = json.dumps({"info": {"features": {column: feature}}}).encode()
    return pa.Table.from_pylist(rows).replace_schema_metadata({b"huggingface": info})


def test_each_table_names_its_classes_itself(tmp_path):
    (tmp_path / "labels").mkdir()
    (tmp_path / "tags").mkdir()
    for split in SPLITS:
        names = ["benign", "malignant"] if split != "test" else ["malignant", "benign"]
        rows: Rows = [{"text": f"a note {split} {i}", "label": i % 2} for i in range(20)]
        table = table_of(rows, "label", names, listed=False)
        pq.write_table(table, tmp_path / "labels" / f"{split}.parquet")
        tags = ["O", "B-X"] if split != "test" else ["B-X", "O"]
        rows = [{"tokens": ["gout", "now"], "tags": [1, 0]}] * 4
        table = table_of(rows, "tags", tags, listed=True)
        pq.write_table(table, tmp_path / "tags" / f"{split}.parquet")
    draft = scaffold(tmp_path / "labels", "made")
    assert any("number their classes differently" in line for line in draft.detected)
    test = load_data(written(draft), tmp_path).test
    assert [d.labels[0] for d in test[:2]] == ["malignant", "benign"]
    assert set(mentions_of(written(scaffold(tmp_path / "tags", "made")))) == {"now/X"}


# Whole corpora


def test_questions_with_options(tmp_path):
    rows = [
        {
            "id": f"q{i}",
            "question": f"Which of {i}?",
            "answers": {"a": "x", "b": "y"},
            "right": ["a"],
        }
        for i in range(6)
    ]
    folder = in_splits(tmp_path / "exam", "{}.json", json.dumps(rows).replace("q", "@q"))
    for split in SPLITS:
        file = folder / f"{split}.json"
        file.write_text(file.read_text().replace(f"{split}q", "q"), encoding="utf-8")
    task = written(scaffold(folder, "made"))
    assert (task.spec.type, task.spec.labels) == ("multiple_choice", ["a", "b"])
    assert task.spec.metric.primary == "exact_match"


def test_pubtator_files_by_their_names(tmp_path):
    block = "1@|t|Gout\n1@|a|It hurts.\n1@\t0\t4\tGout\tD\tD1\n\n"
    folder = tmp_path / "cdr"
    folder.mkdir()
    for split, name in zip(SPLITS, ("Training", "Development", "Test"), strict=True):
        path = folder / f"CDR_{name}Set.PubTator.txt"
        path.write_text(block.replace("@", split), encoding="utf-8")
    (folder / "README.txt").write_text("Read me.", encoding="utf-8")
    task = written(scaffold(folder, "made"))
    assert (task.spec.type, mentions_of(task)) == ("span_ner", ["Gout/D"])


def test_pieces_of_mentions_and_texts_alone_are_counted(tmp_path):
    folder = tmp_path / "brat"
    folder.mkdir()
    for i in range(12):
        (folder / f"{i}.txt").write_text(f"left and right lung {i}", encoding="utf-8")
        (folder / f"{i}.ann").write_text("T1\tAnat 0 4;15 19\tleft lung\n", encoding="utf-8")
    (folder / "11.ann").unlink()
    detected = scaffold(folder, "made").detected
    assert "texts: 1 of 12 have no .ann and are left out" in detected
    assert any(line.startswith("mentions: 11 of 11 stand in several pieces") for line in detected)


def test_folds_are_numbered_folders(tmp_path):
    rows = [(f"A sentence {i} of @", "ab"[i % 2]) for i in range(20)]
    content = "".join(f"{text}\t{label}\n" for text, label in rows)
    for fold in ("1", "2", "3"):
        in_splits(tmp_path / "folds" / fold, "{}.tsv", content)
        (tmp_path / "folds" / fold / "dev.tsv").unlink()
    task = written(scaffold(tmp_path / "folds", "made"))
    assert task.spec.source is not None
    assert task.spec.source.files == {"train": "{fold}/train.tsv", "test": "{fold}/test.tsv"}
    assert task.spec.resampled(task.spec.source) is not None


WORDS = "sentence,word,label\n" + "0,gout,B-X\n1,is,O\n" * 20
HEADED = "text\tlabel\n" + "".join(f"A text {i}\t{'ab'[i % 2]}\n" for i in range(9))
ANSWERS = "sentence\tA\tB\n" + "".join(f"text {i}\t{i % 5}\t{-i % 5}\n" for i in range(30))
COLUMNS = {name: {str(i): "x" for i in range(5)} for name in ("text", "label")}
NUMBERS = [{"tokens": ["flu", "here"], "ner_tags": [1, 0]}] * 3
OBJECTS = [{"text": "Aspirin for gout.", "options": [{"id": "A"}], "accept": ["A"]}] * 9
FASTTEXT = "__label__a pain, and cough\n__label__b fever, none\n" * 5
BARS = "urgent|pain, and cough\nroutine|fever, none\n" * 5
REFUSED = [
    ("all.csv.gz", gzip.compress(b"text,label\n", mtime=0), "1: is compressed (gzip), no text"),
    ("all.xlsx", b"PK\x03\x04rest", "1: is an Excel workbook or a zip archive, no text"),
    ("all.csv", b"%PDF-1.7", "1: is a PDF, no text"),
    ("all.txt", "", "1: is empty"),
    ("all.txt", FASTTEXT, "1: is text in fastText's format"),
    ("all.txt", BARS, "1: holds rows that `|` cuts in two"),
    ("all.txt", "just a line\nand another\n", "1: is neither JSON, a token file with tags"),
    ("all.xml", "<html></html>", "1: is XML, and no reader knows its first element 'html'"),
    ("words.csv", WORDS, "2: the rows are words with tags"),
    ("all.tsv", HEADED * 2, "11: the header stands again"),
    ("all.tsv", ANSWERS, "2: columns A, B hold the same 5 values"),
    ("all.tsv", HEADED + "extra\tfield\there\n", "11: the row has 3 fields, not 2"),
    ("all.tsv", HEADED + '"Not closed\ta\n', "11: not a delimited row: unexpected end of data"),
    ("all.jsonl", lines_of(labelled(12)) + '{"text": "cut\n', "13: not valid JSON"),
    ("all.json", json.dumps({"data": labelled()}), "1: is one JSON object that holds no objects"),
    ("all.json", json.dumps(COLUMNS), "1: is one JSON object that holds no objects"),
    ("all.json", json.dumps([["a text", "a"]] * 5), "1: is not an object"),
    ("all.json", json.dumps(NUMBERS), "1: the tags are numbers without names"),
    ("all.jsonl", lines_of(OBJECTS), "1: has no text field with a label field"),
]
"""File, content, and the line with what is wrong there."""


@pytest.mark.parametrize(("name", "content", "refusal"), REFUSED)
def test_what_no_reader_reads_is_refused_by_what_it_is(name, content, refusal, tmp_path):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(DataFormatError) as caught:
        scaffold(path, "made")
    assert f"{name}:{refusal}" in str(caught.value)


def test_a_folder_of_several_shapes_is_refused(tmp_path):
    in_one(tmp_path / "mixed" / "a.tsv", "x")
    in_one(tmp_path / "mixed" / "b.json", "x")
    with pytest.raises(UsageError, match=r"not one shape of data: 1 \.tsv, 1 \.json"):
        scaffold(tmp_path / "mixed", "made")
    in_one(tmp_path / "both" / "train.csv", "text,label\n")
    pq.write_table(pa.table({"text": ["a"]}), tmp_path / "both" / "test.csv")
    with pytest.raises(DataFormatError, match=r"is no parquet or Arrow file, as test\.csv is"):
        scaffold(tmp_path / "both", "made")
