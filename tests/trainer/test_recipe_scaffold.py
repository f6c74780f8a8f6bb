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
from trainer.model.base import check_base
from transformers import AutoModel, AutoTokenizer

from biobench.errors import BioBenchError, ModelError, UsageError
from tests.helpers.cli_make import call
from tests.helpers.pretrain_models import tiny
from tests.helpers.trainer_make import write
from trainer import api
from trainer.recipe.scaffold import write_recipe

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
    ("make", "field"),
    [(as_jsonl, "body"), (as_csv, "Texte libre"), (as_parquet, "note"), (as_folder, "text"), (as_packed, "text")],
)
def test_the_recipe_loads_and_its_twin_differs_in_the_objective_alone(
    make: Callable[[Path], Path], field: str, tmp_path: Path
) -> None:
    corpus = make(tmp_path)
    path = write_recipe(corpus, "org/base", tmp_path / "recipes", "mine", twin=True)
    recipes = [api.load_recipe(path, arms=arms) for arms in ((), ("twin",))]
    assert [r.name for r in recipes] == ["mine", "mine_twin"]
    assert recipes[0].corpus == recipes[1].corpus
    assert recipes[0].corpus.sources[0].field == field
    assert [p.objective for p in recipes[0].phases] == ["clm", "mlm"]
    assert [p.objective for p in recipes[1].phases] == ["mlm", "mlm"]
    assert [p.tokens for p in recipes[0].phases] == [p.tokens for p in recipes[1].phases]
    extra = 29 * 40 if make is as_csv else 0  # the csv's second line
    assert recipes[0].phases[0].tokens == pytest.approx((sum(map(len, TEXTS)) + extra) / 4, rel=0.05)


def test_a_base_on_this_machine_counts_and_bounds_the_window(tmp_path: Path) -> None:
    base = write(tmp_path / "base", seed=1)
    corpus = tmp_path / "long.jsonl"
    corpus.write_text(json.dumps({"text": "word " * 5_000, "other": "more " * 9_000}) + "\n", encoding="utf-8")
    path = write_recipe(corpus, str(base), tmp_path, "long", tokens="3k")
    assert "counted with the base's tokenizer" in path.read_text(encoding="utf-8")
    recipe = api.load_recipe(str(path))
    assert recipe.corpus.sequence_length == 128, "the base's positions"
    assert (recipe.phases[0].tokens, recipe.corpus.sources[0].field) == (3000, "text")


@pytest.mark.parametrize("kind", ["modernbert", "bert", "camembert", "eurobert", "gemma3_text"])
def test_a_head_is_told_by_the_names_of_the_weights(kind: str, tmp_path: Path) -> None:
    model = tiny(kind)
    model.save_pretrained(tmp_path / "whole")
    config = check_base(tmp_path / "whole")
    assert config is not None
    assert config.model_type == kind
    assert check_base(tmp_path / "nowhere") is None
    model.base_model.save_pretrained(tmp_path / "bare")
    if kind == "gemma3_text":
        assert check_base(tmp_path / "bare") is not None, "its projection is the embedding"
        return
    with pytest.raises(ModelError, match="lacks the weights of its prediction head"):
        check_base(tmp_path / "bare")


def test_a_base_without_a_head_is_refused_by_new_plan_and_pretrain_before_they_begin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    whole, bare = write(tmp_path / "whole", seed=1), tmp_path / "bare"
    AutoModel.from_pretrained(whole).save_pretrained(bare)
    AutoTokenizer.from_pretrained(whole).save_pretrained(bare)
    corpus = as_folder(tmp_path)
    assert call(monkeypatch, capfd, "pretrain", "new", corpus, "--base", whole, "--name", "good").status == 0
    Path("bad.yaml").write_text(Path("good.yaml").read_text().replace(str(whole), str(bare)))
    before = sorted(tmp_path.iterdir())
    monkeypatch.setattr("biobench.workflows.decontamination.guard", lambda *_, **__: pytest.fail("work was begun"))
    for command in (("new", corpus, "--base", bare), ("plan", "bad.yaml"), ("bad.yaml",)):
        line = call(monkeypatch, capfd, "pretrain", *command).refusal()
        assert line == f"the checkpoint '{bare}' lacks the weights of its prediction head, 'head'"
    assert sorted(tmp_path.iterdir()) == before
    assert call(monkeypatch, capfd, "pretrain", "plan", "good.yaml").status == 0


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
