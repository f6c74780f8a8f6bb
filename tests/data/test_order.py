"""Examples come in the order of the files and of the lines in them, whatever their offsets or ids."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from biobench.data.catalog import LoadedTask
from biobench.data.load import load_data
from biobench.errors import DataFormatError
from tests.helpers.reading import Parsed

LABELS = {"labels": "[X, Y]"}


def test_annotated_units_follow_the_lines_of_the_ann(parsed: Parsed) -> None:
    """Units 3, 1, 2 by their lines; mentions before, between and after them; a second file whose name sorts first."""
    text = "one cat\ntwo dogs\nsix cats\n"
    ann = (
        "T9\tX 4 7\tcat\nT8\tUnit 17 25\tsix cats\nT7\tY 12 16\tdogs\nT6\tUnit 0 7\tone cat\n"
        "T5\tUnit 8 16\ttwo dogs\nT4\tX 21 25\tcats\n"
    )
    content = {"part2.txt": text, "part2.ann": ann, "part10.txt": "ten\n", "part10.ann": "T1\tUnit 0 3\tten\n"}
    reader = "{format: brat, segment: annotation, segment_type: Unit}"
    found = parsed(reader, '{all: "*.txt"}', content, **LABELS)
    assert [d.id for d in found] == ["part10:T1", "part2:T8", "part2:T6", "part2:T5"]
    assert [d.text for d in found] == ["ten", "six cats", "one cat", "two dogs"]
    assert [[d.text[a:b] for a, b, _ in d.spans] for d in found] == [[], ["cats"], ["cat"], ["dogs"]]


def test_a_table_of_mentions_follows_the_text_files(parsed: Parsed) -> None:
    """Of `a` and `a-b` the file of the second stands first, though its name without ending does not."""
    content = {"a.txt": "first", "b.txt": "second", "a-b.txt": "third"}
    content["table.csv"] = "name,code\nb,X\na,X\nb,Y\na-b,Y\n"
    reader = "{format: mention_table, document: name, code: code}"
    files = '{texts: "*.txt", labels: table.csv}'
    found = parsed(reader, files, content, type="multi_label", unit="document", **LABELS)
    assert [(d.id, d.labels) for d in found] == [("a-b", ("Y",)), ("a", ("X",)), ("b", ("X", "Y"))]


@pytest.mark.parametrize(("order", "kept"), [("XY", "Y"), ("YX", "X")])
def test_of_mentions_that_begin_alike_the_later_of_the_file_is_the_last(order: str, kept: str, parsed: Parsed) -> None:
    """The two stand in the same place; neither their labels nor their ends decide."""
    spans = [[0, 4, label] for label in order]
    ann = "".join(f"T{i}\t{label} 0 4\tgout\n" for i, label in enumerate(order))
    content = {"a.jsonl": json.dumps({"text": "gout now", "spans": spans}) + "\n", "a.txt": "gout now", "a.ann": ann}
    options = "tokens: words, overlap: last"
    for format, file in (("json_spans", "a.jsonl"), ("brat", "a.txt")):
        reader, files = f"{{format: {format}, {options}}}", f"{{all: {file}}}"
        (d,) = parsed(reader, files, content, type="token_ner", **LABELS)
        assert d.tags == (f"B-{kept}", "O")
        assert d.unexpressed == (order[0],)


REPEATED = "###MEDLINE:7\n\na\tB-X\n\nb\tO\n\n###MEDLINE:5\n\nc\tO\n\n###MEDLINE:7\n\nd\tO\n"


def test_ids_of_documents_that_stand_again(
    parsed: Parsed, make_task: Callable[..., LoadedTask], tmp_path: Path
) -> None:
    content = {"train.tsv": REPEATED, "devel.tsv": "###MEDLINE:5\ne\tB-X\n", "test.tsv": "###MEDLINE:7\nf\tB-X\n"}
    files = "{train: train.tsv, validation: devel.tsv, test: test.tsv}"

    def rows(ids: str) -> list[tuple[str, str]]:
        spec = {"type": "token_ner", "labels": "[X]", "splits": "official"}
        return [(d.id, d.group) for d in parsed(f"{{format: iob, ids: {ids}}}", files, content, **spec)]

    repeated = ["train/7/1", "train/7/2", "train/5/1", "train/7#2/1", "validation/5/1", "test/7/1"]
    assert rows("repeated") == list(zip(repeated, "775757", strict=True))
    assert rows("split_and_name")[-2:] == [("validation/5/1", "validation/5"), ("test/7/1", "test/7")]
    assert rows("name")[-1] == ("7/1", "7")
    task = make_task(type="token_ner", labels="[X]", files=files, reader="{format: iob}")
    with pytest.raises(DataFormatError, match="document id '7/1' stands twice") as caught:
        load_data(task, tmp_path)
    assert "`reader.ids: repeated`" in caught.value.hint
    whole = make_task(
        type="token_ner", labels="[X]", files=files, unit="document", reader="{format: iob, ids: repeated}"
    )
    assert [d.id for d in load_data(whole, tmp_path).train] == ["train/7", "train/5", "train/7#2"]
