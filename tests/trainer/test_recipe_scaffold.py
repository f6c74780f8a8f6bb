"""`pretrain new`: recipes that load, plan and match, from the files that people have."""

from __future__ import annotations

import csv
import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from biobench.errors import BioBenchError, UsageError
from tests.helpers.cli_make import call
from trainer import api
from trainer.recipe.scaffold import measure, text_field, write_recipe

TEXTS = [f"Note {i}: the patient has fever and a cough." * (1 + i % 5) for i in range(40)]


def as_jsonl(folder: Path) -> Path:
    path = folder / "notes.jsonl"
    path.write_text("".join(json.dumps({"id": "x" * 3, "body": t}) + "\n" for t in TEXTS), encoding="utf-8")
    return path


def as_csv(folder: Path) -> Path:
    path = folder / "notes.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerows([["id", "Texte libre"], *([i, f'{t} "cited", on\ntwo lines'] for i, t in enumerate(TEXTS))])
    return path


def as_parquet(folder: Path) -> Path:
    path = folder / "notes.parquet"
    pq.write_table(pa.table({"n": list(range(40)), "note": TEXTS}), path)
    return path


def as_folder(folder: Path) -> Path:
    (folder / "texts").mkdir()
    for i, text in enumerate(TEXTS):
        (folder / "texts" / f"{i}.txt").write_text(text, encoding="utf-8")
    return folder / "texts"


def as_packed(folder: Path) -> Path:
    path = folder / "notes.jsonl.gz"
    path.write_bytes(gzip.compress("".join(json.dumps({"text": t}) + "\n" for t in TEXTS).encode()))
    return path


@pytest.mark.parametrize(
    ("write", "field"),
    [(as_jsonl, "body"), (as_csv, "Texte libre"), (as_parquet, "note"), (as_folder, "text"), (as_packed, "text")],
)
def test_the_recipe_loads_and_its_twin_differs_in_the_objective_alone(
    write: Callable[[Path], Path], field: str, tmp_path: Path
) -> None:
    corpus = write(tmp_path)
    path = write_recipe(corpus, "org/base", tmp_path / "recipes", "mine", twin=True)
    recipes = [api.load_recipe(path, arms=arms) for arms in ((), ("twin",))]
    assert [r.name for r in recipes] == ["mine", "mine_twin"]
    assert recipes[0].corpus == recipes[1].corpus
    assert recipes[0].corpus.sources[0].field == field
    assert [p.objective for p in recipes[0].phases] == ["clm", "mlm"]
    assert [p.objective for p in recipes[1].phases] == ["mlm", "mlm"]
    assert [p.tokens for p in recipes[0].phases] == [p.tokens for p in recipes[1].phases]
    extra = 29 * 40 if write is as_csv else 0  # the csv's second line
    assert recipes[0].phases[0].tokens == pytest.approx((sum(map(len, TEXTS)) + extra) / 4, rel=0.05)


def test_the_text_column_is_text_where_there_is_one(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps({"text": "short", "other": "much longer"}) + "\n", encoding="utf-8")
    assert text_field(path) == "text"


def test_a_base_on_this_machine_counts_and_bounds_the_window(tmp_path: Path) -> None:
    from tests.helpers.tiny import make_tiny_encoder

    base = make_tiny_encoder(tmp_path / "base")
    corpus = tmp_path / "long.txt"
    corpus.write_text("word " * 50_000, encoding="utf-8")
    measured = measure(corpus, str(base))
    assert measured.counted
    assert measured.window is not None
    path = write_recipe(corpus, str(base), tmp_path, "long", tokens="3k")
    recipe = api.load_recipe(str(path))
    assert recipe.corpus.sequence_length == measured.window
    assert recipe.phases[0].tokens == 3000


def test_nothing_is_overwritten_and_bad_input_is_named(tmp_path: Path) -> None:
    corpus = as_jsonl(tmp_path)
    path = write_recipe(corpus, "org/base", tmp_path, "mine")
    before = path.read_text(encoding="utf-8")
    with pytest.raises(UsageError, match=r"mine\.yaml exists"):
        write_recipe(corpus, "org/other", tmp_path, "mine", twin=True)
    assert path.read_text(encoding="utf-8") == before
    with pytest.raises(UsageError, match="'3Q' is no amount"):
        write_recipe(corpus, "org/base", tmp_path, "b", tokens="3Q")
    with pytest.raises(UsageError, match="no such file"):
        write_recipe(tmp_path / "nothing", "org/base", tmp_path, "b")
    empty = tmp_path / "empty.txt"
    empty.write_text(" \n", encoding="utf-8")
    with pytest.raises(BioBenchError, match="holds no text"):
        write_recipe(empty, "org/base", tmp_path, "b")
    assert not (tmp_path / "b.yaml").exists()


def test_the_command_in_two_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    corpus = as_folder(tmp_path)
    shown = call(monkeypatch, capfd, "pretrain", "new", corpus, "--base", "org/base", "--twin", "--out", tmp_path)
    assert shown.status == 0
    assert f"biobench pretrain {tmp_path / 'detour.yaml'} --out runs/detour" in shown.out
    assert f"biobench pretrain {tmp_path / 'detour.yaml'} --arm twin --out runs/detour_twin" in shown.out
    assert "biobench ledger runs/detour runs/detour_twin" in shown.out
