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

from biobench.data.load import load_data
from biobench.data.scaffold import scaffold
from biobench.data.sniff import Wanted
from biobench.errors import DataFormatError, UsageError
from tests.helpers.drafts import (
    SPLITS,
    Rows,
    content_of,
    drafted,
    in_splits,
    mentions_of,
    rows,
    write,
    written,
)

LABELLED = {"text": "Patient {i} has pain and a cough.", "label": ("urgent", "routine", "routine")}

# Token files


IOB1 = "gout\tI-X\nthen\tO\n\nflu\tB-X\nfever\tI-X\nand\tO\nasthma\tI-X\n\n"
B_ONCE = "gout\tB-X\nthen\tO\nflu\tB-X\nof\tO\nasthma\tI-X\n\n"
"""Most mentions begin with B-, one does not: lenient alone loses nothing."""
ALL_OF_Y = "hay\tI-X\nflu\tB-X\nthen\tO\ngout\tI-Y\n\n"
"""Strict IOB2 drops all of Y."""


@pytest.mark.parametrize(
    ("content", "scheme", "decode", "mentions"),
    [
        (IOB1, "IOB1", "strict", ["gout/X", "flu fever/X", "asthma/X"]),
        ("gout\tB-X\nflu\tB-X\nfever\tI-X\n\n", "IOB2", "strict", ["gout/X", "flu fever/X"]),
        (B_ONCE, "IOB2", "lenient", ["gout/X", "flu/X", "asthma/X"]),
        (ALL_OF_Y, "IOB1", "strict", ["hay/X", "flu/X", "gout/Y"]),
        ("hay\tB-X\nfever\tE-X\nflu\tS-X\n\n", "IOBES", "strict", ["hay fever/X", "flu/X"]),
    ],
)
def test_the_scheme_is_the_one_that_loses_no_mention(content, scheme, decode, mentions, tmp_path):
    draft = scaffold(in_splits(tmp_path / "tags", "{}.tsv", content), "made")
    assert f"scheme: {scheme}, decode: {decode}" in draft.text
    assert mentions_of(written(draft)) == mentions
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
    outside = tags.split()[2]
    content = "hay\t{}\nfever\t{}\nor\t{}\nflu\t{}\n".format(*tags.split())
    content += f"or\t{outside}\nnot\t{outside}\nor\t{outside}\nnone\t{outside}\n\n"
    task = drafted(in_splits(tmp_path / "tags", "{}.tsv", content))
    assert (task.spec.type, mentions_of(task)) == ("token_ner", mentions)


def test_comment_lines_and_numbered_words_are_no_words(tmp_path):
    content = "# sent_id = @ 1\n1\tgout\tNOUN\tB-X\n2\t#\tSYM\tO\n\n"
    task = drafted(in_splits(tmp_path / "conllu", "{}.conllu", content))
    assert [d.text for d in load_data(task, tmp_path).test] == ["gout #"]


def test_a_ragged_line_of_a_token_file_is_named(tmp_path):
    content = "gout\tB-X\nis\tO\n\n" * 8 + "bad\tO\tline\n"
    with pytest.raises(DataFormatError, match=r"train\.tsv:25: the row has 3 fields"):
        scaffold(in_splits(tmp_path / "tags", "{}.tsv", content), "made")


def test_lists_of_tags_of_any_scheme(tmp_path):
    lists = [{"tokens": ["hay", "fever", "and", "flu"], "tags": ["I", "I", "O", "I"]}] * 3
    draft = scaffold(in_splits(tmp_path / "lists", "{}.json", json.dumps(lists)), "made")
    assert "layout: list, tokens: tokens, tags: tags, scheme: IOB1" in draft.text
    assert "type: token_ner" in draft.text
    assert set(mentions_of(written(draft))) == {"hay fever/Entity", "flu/Entity"}


# Delimited rows


@pytest.mark.parametrize(
    ("header", "row"),
    [
        (",text,label", '{i},"Patient {i}, pain",{label}'),
        ('"",text,label', '{i},"Patient {i}, pain",{label}'),
        ("text,label,", '"Patient {i}, pain",{label},x{i}'),
    ],
)
def test_a_header_may_have_a_blank_cell(header, row, tmp_path):
    cells = [row.format(i=i, label=("routine", "urgent")[i % 2]) for i in range(30)]
    draft = scaffold(write(tmp_path / "all.csv", "\n".join([header, *cells])), "made")
    assert "labels: [routine, urgent]" in draft.text
    assert "documents: train 24, validation 3, test 3" in draft.detected
    assert any("(without a name)" in line for line in draft.detected)


def test_a_header_with_a_name_twice_is_read_by_numbers(tmp_path):
    cells = content_of(".tsv", rows(30, a="x{i}", note="A long text {i}", label=("a", "b")))
    content = cells.replace("a\tnote", "note\tnote", 1)
    draft = scaffold(write(tmp_path / "twice" / "all.tsv", content), "made")
    assert "header: true, columns: {text: 1, label: 2}" in draft.text
    assert sum(c["documents"] for c in written(draft).spec.counts.values()) == 30


SENTENCES = content_of(".tsv", rows(20, text="A sentence {i} of @", label=("0", "1")))
"""With a header."""
TURNED = content_of(".tsv", rows(20, label=("0", "1"), text="A sentence {i} of @"))


def test_each_file_has_its_own_header(tmp_path):
    folder = in_splits(tmp_path / "gad", "{}.tsv", SENTENCES.partition("\n")[2])
    headed = rows(20, index="{i}", sentence="A sentence {i} of @", label=("0", "1"))
    write(folder / "test.tsv", headed)
    data = load_data(drafted(folder), tmp_path)
    assert (data.train[0].text, data.train[0].labels) == ("A sentence 0 of train", ("0",))
    assert (data.test[1].text, data.test[1].labels) == ("A sentence 1 of @", ("1",))
    # Other names, and another order.
    in_splits(folder, "{}.tsv", TURNED.replace("label\ttext", "class\ttext"))
    write(folder / "test.tsv", TURNED.replace("label\ttext", "gold\tnote"))
    draft = scaffold(folder, "made")
    assert load_data(written(draft), tmp_path).test[1].labels == ("1",)
    layout = "split_layout: {test: {header: true, columns: {text: note, label: gold}}}"
    assert layout in draft.text


@pytest.mark.parametrize("ending", ["tsv", "csv"])
def test_a_quote_that_swallows_rows_is_a_plain_sign(ending, tmp_path):
    notes = rows(20, id="{i}", text="Note {i} on pain.", label=("a", "b"))
    notes[3]["text"], notes[6]["text"] = '"Chest pain since Monday', 'he said it is fine"'
    draft = scaffold(write(tmp_path / f"all.{ending}", notes), "made")
    assert "quoting: none" in draft.text
    assert "documents: train 16, validation 2, test 2" in draft.detected


def test_a_quoted_text_of_several_lines_is_a_finding(tmp_path):
    notes = rows(20, text='"Note {i}, on pain.\nNext line"', label=("a", "b"))
    draft = scaffold(write(tmp_path / "all.csv", notes), "made")
    assert "quoting" not in draft.text
    (line,) = [line for line in draft.detected if "quotes" in line]
    assert line.startswith("finding: quotes: 20 rows whose quoted field goes on over several lines")
    assert "all.csv lines 26 to 27" in line


# JSON and parquet


@pytest.mark.parametrize("name", ["all.json", "all.txt", "all.data"])
def test_json_is_known_by_its_content(name, tmp_path):
    items = rows(30, **LABELLED)
    contents = {
        "lines": content_of(".jsonl", items),
        "list": json.dumps(items, indent=1),
        "keyed": json.dumps({f"p{i}": row for i, row in enumerate(items)}),
    }
    for layout, content in contents.items():
        task = drafted(write(tmp_path / layout / name, content))
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
    items = rows(12, text="Aspirin {i} for gout.", entities=[[mention]])
    items[3]["entities"] = []
    task = drafted(write(tmp_path / "tool" / "all.jsonl", items))
    assert (task.spec.type, task.spec.labels) == ("span_ner", ["Drug"])
    assert set(mentions_of(task)) == {"Aspirin/Drug"}


MULTI_HOT = ([1.0, 0.0, 0.0, 1.0], [0, 1, 1])
WRITTEN_LISTS = ("['a', 'b']", "[1 0 0]", '{"a": 1}')


@pytest.mark.parametrize(
    "label", [*MULTI_HOT, {"choices": ["a"]}, [["a", "b"]], 0.5, *WRITTEN_LISTS]
)
def test_what_is_no_label_is_refused(label, tmp_path):
    items = rows(30, **LABELLED)
    items[4]["label"] = label
    with pytest.raises(DataFormatError, match=r"all\.jsonl:5: is no label \(column 'label'\)"):
        scaffold(write(tmp_path / "all.jsonl", items), "made")


def test_a_label_that_is_named_is_the_only_one_asked(tmp_path):
    items = rows(30, text="Patient {i} has pain.", urgency=("routine", "urgent"), label=[[1, 0, 0]])
    path = write(tmp_path / "named" / "all.jsonl", items)
    task = written(scaffold(path, "made", wanted=Wanted(label="urgency")))
    assert task.spec.labels == ["routine", "urgent"]


def test_a_text_that_is_named_as_the_label_too_is_refused(tmp_path):
    path = write(tmp_path / "all.jsonl", rows(30, **LABELLED))
    with pytest.raises(DataFormatError, match="has no text field with a label field"):
        scaffold(path, "made", wanted=Wanted(text="text", label="text"))


def test_a_word_in_brackets_is_a_label(tmp_path):
    items = rows(30, text="Patient {i} has pain.", label=("[urgent]", "[routine]"))
    task = drafted(write(tmp_path / "brackets" / "all.jsonl", items))
    assert task.spec.labels == ["[routine]", "[urgent]"]


@pytest.mark.parametrize(
    "row",
    [{"tokens": ["@", "flu"], "tags": ["O", "B-X"]}, {"text": "@ flu", "ents": [[2, 5, "X"]]}],
)
def test_tokens_and_mentions_by_their_ids(row, tmp_path):
    content = json.dumps({f"note-{i}": row for i in range(12)})
    task = drafted(write(tmp_path / "keyed" / "all.json", content))
    assert set(mentions_of(task)) == {"flu/X"}
    assert {d.id.partition("-")[0] for d in load_data(task, tmp_path).train} == {"note"}


def write_table(path: Path, items: Rows, column: str, feature: dict[str, Any]) -> None:
    """A table of the hub, one column of which has names for its integers."""
    info = json.dumps({"info": {"features": {column: feature}}}).encode()
    table = pa.Table.from_pylist(items).replace_schema_metadata({b"huggingface": info})
    path.parent.mkdir(exist_ok=True)
    pq.write_table(table, path)


def test_each_table_names_its_classes_itself(tmp_path):
    classes, tags = ["benign", "malignant"], ["O", "B-X"]
    for split in ("train", "dev", "test"):
        if split == "test":
            classes, tags = classes[::-1], tags[::-1]
        items = rows(20, text=f"a note {split} {{i}}", label=(0, 1))
        feature: dict[str, Any] = {"names": classes, "_type": "ClassLabel"}
        write_table(tmp_path / "labels" / f"{split}.parquet", items, "label", feature)
        items = rows(4, tokens=[["gout", "now"]], tags=[[1, 0]])
        feature = {"feature": {"names": tags, "_type": "ClassLabel"}, "_type": "Sequence"}
        write_table(tmp_path / "tags" / f"{split}.parquet", items, "tags", feature)
    draft = scaffold(tmp_path / "labels", "made")
    assert any("number their classes differently" in line for line in draft.detected)
    test = load_data(written(draft), tmp_path).test
    assert [d.labels[0] for d in test[:2]] == ["malignant", "benign"]
    assert set(mentions_of(drafted(tmp_path / "tags"))) == {"now/X"}


# Whole corpora


def test_questions_with_options(tmp_path):
    items = rows(6, question="Which of {i}?", answers=[{"a": "x", "b": "y"}], right=[["a"]])
    for split in SPLITS:
        exam = [{"id": f"{split}{i}", **item} for i, item in enumerate(items)]
        write(tmp_path / "exam" / f"{split}.json", json.dumps(exam))
    task = drafted(tmp_path / "exam")
    assert (task.spec.type, task.spec.labels) == ("multiple_choice", ["a", "b"])
    assert task.spec.metric.primary == "exact_match"


def test_pubtator_files_by_their_names(tmp_path):
    block = "1@|t|Gout\n1@|a|It hurts.\n1@\t0\t4\tGout\tD\tD1\n\n"
    for split in ("Training", "Development", "Test"):
        path = tmp_path / "cdr" / f"CDR_{split}Set.PubTator.txt"
        write(path, block.replace("@", split))
    write(tmp_path / "cdr" / "README.txt", "Read me.")
    task = drafted(tmp_path / "cdr")
    assert (task.spec.type, mentions_of(task)) == ("span_ner", ["Gout/D"])


def test_pieces_of_mentions_and_texts_alone_are_counted(tmp_path):
    for i in range(12):
        write(tmp_path / "brat" / f"{i}.txt", f"left and right lung {i}")
        write(tmp_path / "brat" / f"{i}.ann", "T1\tAnat 0 4;15 19\tleft lung\n")
    (tmp_path / "brat" / "11.ann").unlink()
    detected = scaffold(tmp_path / "brat", "made").detected
    assert "texts: 1 of 12 have no .ann and are left out" in detected
    assert any(line.startswith("mentions: 11 of 11 stand in several pieces") for line in detected)


def test_folds_are_numbered_folders(tmp_path):
    for fold in ("1", "2", "3"):
        for split in ("train", "test"):
            items = rows(20, text=f"A sentence {{i}} of {split}", label=("a", "b"))
            content = content_of(".tsv", items).partition("\n")[2]
            write(tmp_path / "folds" / fold / f"{split}.tsv", content)
    spec = drafted(tmp_path / "folds").spec
    assert spec.source.files == {"train": "{fold}/train.tsv", "test": "{fold}/test.tsv"}
    assert spec.resampled(spec.source).fold_files == 3


WORDS = "sentence,word,label\n" + "0,gout,B-X\n1,is,O\n" * 20
HEADED = content_of(".tsv", rows(9, text="A text {i}", label=("a", "b")))
ANSWERS = "sentence\tA\tB\n" + "".join(f"text {i}\t{i % 5}\t{-i % 5}\n" for i in range(30))
COLUMNS = {name: {str(i): "x" for i in range(5)} for name in ("text", "label")}
NUMBERS = [{"tokens": ["flu", "here"], "ner_tags": [1, 0]}] * 3
OBJECTS = [{"text": "Aspirin for gout.", "options": [{"id": "A"}], "accept": ["A"]}] * 9
OBJECT_LINES = content_of(".jsonl", OBJECTS)
ONE_LABEL = content_of(".csv", rows(20, id="{i}", note="a text {i}", ward="cardio"))
SCORES = [{"text": f"a first text {i}", "score": i / 7} for i in range(20)]
FASTTEXT = "__label__a pain, and cough\n__label__b fever, none\n" * 5
BARS = "urgent|pain, and cough\nroutine|fever, none\n" * 5
BLANK = "texte;service\n" + "".join(
    f"un long texte {i};{w}\n" for i, w in enumerate(["a", ""] * 2 + ["b"] * 4)
)
HALF_BLANK = "id;texte;classe\n" + "".join(
    f"{i // 2};un long texte {i};{'a' if i % 2 else ''}\n" for i in range(8)
)
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
    (
        "all.jsonl",
        content_of(".jsonl", rows(12, **LABELLED)) + '{"text": "cut\n',
        "13: not valid JSON",
    ),
    (
        "all.json",
        json.dumps({"data": rows(30, **LABELLED)}),
        "1: is one JSON object that holds no objects",
    ),
    ("all.json", json.dumps(COLUMNS), "1: is one JSON object that holds no objects"),
    ("all.json", json.dumps([["a text", "a"]] * 5), "1: is not an object"),
    ("all.json", json.dumps(NUMBERS), "1: the tags are numbers without names"),
    ("all.jsonl", OBJECT_LINES, "1: has no text field with a label field"),
    ("all.jsonl", content_of(".jsonl", SCORES), "1: has no text field with a label field"),
    (
        "all.csv",
        ONE_LABEL,
        "1: has no text field with a label field: every 'ward' is 'cardio'",
    ),
    ("all.csv", BLANK, "3: has no label, as 2 of 8 rows"),
    ("all.csv", HALF_BLANK, "2: 'classe' is empty, as in 4 of 8 rows"),
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
    write(tmp_path / "mixed" / "a.tsv", "x")
    write(tmp_path / "mixed" / "b.json", "x")
    with pytest.raises(UsageError, match=r"not one shape of data: 1 \.tsv, 1 \.json"):
        scaffold(tmp_path / "mixed", "made")
    write(tmp_path / "both" / "train.csv", "text,label\n")
    pq.write_table(pa.table({"text": ["a"]}), tmp_path / "both" / "test.csv")
    with pytest.raises(DataFormatError, match=r"is no parquet or Arrow file, as test\.csv is"):
        scaffold(tmp_path / "both", "made")
