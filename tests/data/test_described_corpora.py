"""Corpora known from descriptions alone, in files of the described layout; and E3C's own files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from biobench.data.catalog import load_task
from biobench.data.load import load_data
from biobench.data.verify import verify
from biobench.errors import DataFormatError
from biobench.schema.document import Prediction, Span
from biobench.score import compute

REPORT = "Mme Élise Martin, née le 3 mai 1950, vit à Brest."
MENTIONS = [(4, 9, "FIRST_NAME"), (10, 16, "LAST_NAME"), (43, 48, "CITY")]


def mention(report: str, start: int, end: int, label: str, **more: Any) -> dict[str, Any]:
    return {
        "report": report,
        "span_id": f"{report}-{start}",
        "span_type": "Identifiant",
        "begin": start,
        "end": end,
        "span_text": REPORT[start:end],
        "attribute_Categorie": label,
        "attribute_RolePER": None,
        **more,
    }


def put_parhaf(data_dir: Path, *more: dict[str, Any]) -> None:
    """20 reports in train and 5 in dev, the last of each without mentions. more: rows of train's
    table of mentions.
    """
    for split, size in (("train", 20), ("dev", 5)):
        reports = [f"{split}-{n}" for n in range(size)]
        texts = [{"report": report, "full_text": REPORT, "title": "CRH"} for report in reports]
        spans = [mention(report, *m) for report in reports[:-1] for m in reversed(MENTIONS)]
        for table, rows in (("document_metadata", texts), ("spans", spans)):
            folder = data_dir / "PARHAF-pseudo-annotated" / "data" / table
            folder.mkdir(parents=True, exist_ok=True)
            added = list(more) if (table, split) == ("spans", "train") else []
            pq.write_table(pa.Table.from_pylist(rows + added), folder / f"{table}_{split}.parquet")


def test_parhaf_is_read_from_its_two_tables_and_its_counts_are_told(tmp_path: Path) -> None:
    put_parhaf(tmp_path)
    task = load_task("parhaf_pseudo")
    data = load_data(task, tmp_path)
    assert {name: len(documents) for name, documents in data.documents.items()} == {
        "train": 17,
        "validation": 3,
        "test": 5,
    }
    assert [(d.id, d.text, d.spans) for d in (data.test[0], data.test[-1])] == [
        ("dev-0", REPORT, tuple(Span(*m) for m in MENTIONS)),
        ("dev-4", REPORT, ()),
    ]
    assert verify(task, tmp_path).problems == [
        "counts.all.documents: the spec says 509, source 'hub' has 25",
        "counts.all.mentions: the spec says 6976, source 'hub' has 69",
    ]


@pytest.mark.parametrize(
    ("row", "words"),
    [
        (mention("train-0", 4, 9, "CITY", span_text="Louise"), "characters 4-9 are not 'Louise'"),
        (mention("train-0", 4, 99, "CITY"), "offsets 4-99 leave the text"),
        (mention("train-0", 4, 9, "PET"), "'PET' is not a label of the task"),
        (mention("lost", 4, 9, "CITY"), "document 'lost' of a mention has no text"),
        (mention("train-0", 4, 9, "CITY", begin=None), "the row has a null in field 'begin'"),
    ],
)
def test_a_wrong_mention_of_a_table_is_refused_with_its_row(
    row: dict[str, Any], words: str, tmp_path: Path
) -> None:
    put_parhaf(tmp_path, row)
    with pytest.raises(DataFormatError) as caught:
        load_data(load_task("parhaf_pseudo"), tmp_path)
    assert words in str(caught.value)
    assert (Path(str(caught.value.file)).name, caught.value.line) == ("spans_train.parquet", 58)


def test_pico_counts_words_of_each_type_and_averages_their_f1(tmp_path: Path) -> None:
    """Two neighbours of a type are two answers, so one of them found is half a recall."""
    folder = tmp_path / "ebm_pico"
    folder.mkdir()
    words = [("Aspirin", "I-INT"), ("in", "O"), ("young", "I-PAR"), ("adults", "I-PAR")]
    lines = "".join(f"{word} NN O {tag}\n" for word, tag in words)
    for number, name in enumerate(("train", "dev", "test")):
        (folder / f"{name}.txt").write_text(f"-DOCSTART- (100{number})\n\n{lines}\n\n")
    data = load_data(load_task("ebm_pico"), tmp_path)
    (gold,) = data.test
    assert (gold.id, gold.tags) == ("1002/1", ("B-INT", "O", "B-PAR", "B-PAR"))
    found = gold.spans[:2]
    scores = compute(
        type="token_ner",
        labels=data.labels,
        gold_labels=data.gold_labels,
        gold=data.test,
        predictions=[Prediction(gold.id, spans=found)],
    )
    f1 = {"INT": 1.0, "PAR": 2 * 1 / (2 * 1 + 1)}
    assert scores.values["macro_f1"] == pytest.approx(sum(f1.values()) / 2)


def test_the_two_pxcorpus_tasks_draw_the_same_recordings(tmp_path: Path) -> None:
    folder = tmp_path / "pxcorpus"
    folder.mkdir()
    recordings = [f"prendre {n} comprimés" for n in range(10)]
    tags = ("O", "B-d_dos_val", "B-d_dos_form")
    blocks = [
        "".join(f"{word}\t{tag}\n" for word, tag in zip(text.split(), tags, strict=True))
        for text in recordings
    ]
    (folder / "PxSLU_conll.txt").write_text("\n".join(blocks), encoding="utf-8")
    (folder / "seq.tsv").write_text(
        "".join(f"{text}\tmedical_prescription\n" for text in recordings), encoding="utf-8"
    )
    slots, intents = (load_data(load_task(f"pxcorpus_{name}"), tmp_path) for name in ("ner", "cls"))
    texts = {name: [d.text for d in documents] for name, documents in slots.documents.items()}
    assert texts == {
        name: [d.text for d in documents] for name, documents in intents.documents.items()
    }
    assert {name: len(documents) for name, documents in texts.items()} == {
        "train": 7,
        "validation": 1,
        "test": 2,
    }


@pytest.mark.real
@pytest.mark.parametrize("name", ["e3c_clinical", "e3c_temporal"])
def test_e3c_has_the_sizes_of_the_facts_and_only_known_findings(name: str, data_dir: Path) -> None:
    report = verify(load_task(name), data_dir)
    assert report.problems == []
    assert report.as_dict()["alarms"] == []
