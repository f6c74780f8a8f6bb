"""`pretrain new`: recipes that load, plan and match, from the files that people have."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from biobench.errors import BioBenchError, ModelError, UsageError
from tests.helpers.cli_make import call
from tests.helpers.trainer_make import write
from trainer import api
from trainer.recipe.scaffold import write_recipe

TEXTS = [f"Note {i}: the patient has fever and a cough." * (1 + i % 5) for i in range(40)]


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    path = tmp_path / "notes.jsonl"
    path.write_text("".join(json.dumps({"id": "x", "body": t}) + "\n" for t in TEXTS), encoding="utf-8")
    return path


def test_the_recipe_loads_and_its_twin_differs_in_the_objective_alone(corpus: Path, tmp_path: Path) -> None:
    path = write_recipe(corpus, "org/base", tmp_path / "recipes", "mine", field="body")
    detour, twin = (api.load_recipe(path, arms=arms) for arms in ((), ("twin",)))
    assert (detour.name, twin.name) == ("mine", "mine_twin")
    assert detour.corpus == twin.corpus
    assert detour.corpus.sources[0].field == "body"
    assert [p.objective for p in detour.phases] == ["clm", "mlm"]
    assert [p.objective for p in twin.phases] == ["mlm", "mlm"]
    assert [p.tokens for p in detour.phases] == [p.tokens for p in twin.phases]
    assert detour.phases[0].tokens == pytest.approx(sum(map(len, TEXTS)) / 4, rel=0.05)
    assert (detour.corpus.sequence_length, detour.batch.sequences) == (128, 4)


def test_a_base_on_this_machine_bounds_the_window_and_is_planned(tmp_path: Path) -> None:
    base = write(tmp_path / "base", seed=1)
    corpus = tmp_path / "long.jsonl"
    corpus.write_text(json.dumps({"text": "word " * 5_000}) + "\n", encoding="utf-8")
    path = write_recipe(corpus, str(base), tmp_path, "long", tokens="3k")
    recipe = api.load_recipe(str(path))
    assert recipe.corpus.sequence_length == 128, "the base's positions"
    assert recipe.phases[0].tokens == 3000
    assert api.plan(recipe).phases[0].steps == 6


def test_nothing_is_overwritten_and_bad_input_is_named(corpus: Path, tmp_path: Path) -> None:
    path = write_recipe(corpus, "org/base", tmp_path, "mine", field="body")
    before = path.read_text(encoding="utf-8")
    with pytest.raises(UsageError, match=r"mine\.yaml exists"):
        write_recipe(corpus, "org/other", tmp_path, "mine", field="body")
    assert path.read_text(encoding="utf-8") == before
    with pytest.raises(UsageError, match="'3Q' is no amount"):
        write_recipe(corpus, "org/base", tmp_path, "b", field="body", tokens="3Q")
    with pytest.raises(UsageError, match="no such file"):
        write_recipe(tmp_path / "nothing", "org/base", tmp_path, "b")
    with pytest.raises(BioBenchError, match=r"no text under 'text' \(it has: body, id\)"):
        write_recipe(corpus, "org/base", tmp_path, "b")
    (tmp_path / "config.json").write_text('{"model_type": "t5"}')
    with pytest.raises(ModelError):
        write_recipe(corpus, str(tmp_path), tmp_path, "b", field="body")
    empty = tmp_path / "empty.txt"
    empty.write_text(" \n", encoding="utf-8")
    with pytest.raises(BioBenchError, match="holds no text"):
        write_recipe(empty, "org/base", tmp_path, "b")
    assert not (tmp_path / "b.yaml").exists()


def test_the_command_names_the_next_ones(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    words = ("new", corpus, "--base", "org/base", "--twin", "--field", "body", "--out", tmp_path)
    shown = call(monkeypatch, capfd, "pretrain", *words)
    assert shown.status == 0
    assert f"biobench pretrain {tmp_path / 'detour.yaml'} --out runs/detour" in shown.out
    assert f"biobench pretrain {tmp_path / 'detour.yaml'} --arm twin --out runs/detour_twin" in shown.out
    assert "biobench ledger runs/detour runs/detour_twin" in shown.out
