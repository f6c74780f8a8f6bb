"""Every shipped recipe is valid, planned and, at toy size, trains; every mistake is one line;
recipes for own files.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from transformers import AutoModel

from biobench.errors import SpecError
from tests.helpers.cli_make import call
from tests.helpers.trainer_make import GOOD, SMALL, refusal, train, write
from trainer import api
from trainer.recipe.library import load_recipe
from trainer.recipe.scaffold import write_recipe
from trainer.train.run_folder import differences, training_fields

TOYS = (
    "toy_detour",
    "toy_random_order",
    "toy_freeze_low",
    "toy_antlm",
    "toy_biphasic",
    "toy_gemma_reverse",
)
"""One of each way to be trained; the others differ from these in lengths, seeds and the order of
phases.
"""
PLANNED = ("fr_large_detour", "gemma_reverse", "biphasic_scratch")
OWN = ("base.config.num_hidden_layers", "base.config.local_attention", "phases", "logging")
SHRINK = [
    *(field for field in SMALL if not field.startswith(OWN)),
    "base.config.num_attention_heads=4",
]
"""Layers and phases are the recipe's."""


@pytest.mark.parametrize("name", [*PLANNED, *TOYS])
def test_recipes_are_planned_without_network(name: str) -> None:
    recipe, plan = load_recipe(name), api.plan(name)
    assert [p.steps for p in plan.phases] == [recipe.steps(p) for p in recipe.phases]
    assert plan.memory_bytes > plan.state_bytes > 15 * plan.parameters
    assert any("FLOP" in line for line in plan.lines())


@pytest.mark.parametrize("name", TOYS)
def test_every_toy_recipe_trains(name: str, corpora: Path, tmp_path: Path) -> None:
    recipe = load_recipe(name)
    overrides = [*SHRINK, f"corpus.cache={corpora}"]
    for number in range(len(recipe.phases)):
        overrides += [f"phases.{number}.tokens=800", f"phases.{number}.schedule.warmup=0"]
        if recipe.phases[number].schedule.cooldown is not None:
            overrides.append(f"phases.{number}.schedule.cooldown=400")
    for record in train(tmp_path / "run", overrides, name).ledger.phases:
        assert (record.leak == 0.0) == (record.objective == "clm")
        assert record.steps == 3


@pytest.mark.parametrize(
    ("size", "tokens", "flops"),
    [
        ("en_base_twin", 50e9, (1353, 1318)),
        ("fr_base_detour", 10e9, (1127, 1306)),
        ("en_large_detour", 50e9, (2892, 3141)),
    ],
)
def test_plans_give_the_fact_sheets_figures(
    size: str, tokens: float, flops: tuple[int, int]
) -> None:
    plan = api.plan(size)
    assert plan.step_tokens == 3_145_728
    assert plan.phases[0].tokens == pytest.approx(tokens, rel=1e-3)
    assert plan.phases[0].tokens >= tokens
    assert [round(p.flops_per_token / 1e6) for p in plan.phases] == pytest.approx(flops, abs=1)


LATE = "schedule: {shape: linear, warmup: 4k, cooldown: 7k}"


@pytest.mark.parametrize(
    ("old", "new", "line", "what"),
    [
        ("sequence_length: 128", "sequnce_length: 128", 5, "unknown key 'sequnce_length'"),
        ("tokens: 10k", "tokens: 10 kilo", 9, "not an amount of tokens"),
        ("masking: {rate: 0.3}, ", "", 9, "'one' is mlm: mlm has masking"),
        ("objective: mlm", "objective: clm", 9, "'one' is clm: mlm has masking"),
        ("{id: a, path", "{id: fr/emb, path", 4, "'fr/emb' is not a name"),
        ("tokens: 10k}", "tokens: 10k, schedule: {warmup: -5}}", 9, "warmup"),
        ("path: texts", "embedded: {documents: 20}, path: texts", 4, "exactly one of"),
        (
            "base: {model: somewhere}",
            "base: {model: somewhere, config: {model_type: bert}}",
            2,
            "either a model",
        ),
        ("tokens: 10k}", "tokens: 10k, freeze: {layers: 7-3}}", 9, "not understood"),
        ("tokens: 10k}", "tokens: 10k, schedule: {warmup: 20k}}", 9, "warms up over"),
        (
            "tokens: 10k}",
            "tokens: 10k, schedule: {cooldown: 2k}}",
            9,
            "a cooldown and a constant rate",
        ),
        ("tokens: 10k}", f"tokens: 10k, {LATE}}}", 9, "cools down over 7k of the 6k tokens"),
        ("name: mine", "extends: no_such_recipe\nname: mine", 1, "no recipe 'no_such_recipe'"),
        ("name: mine", "extends: recipe\nname: mine", 1, "not in a circle"),
        ("name: mine", "name: mine\nname: yours", 2, "duplicate key"),
    ],
)
def test_mistakes_are_one_line_with_their_place(
    old: str, new: str, line: int, what: str, tmp_path: Path
) -> None:
    assert old in GOOD
    file = tmp_path / "recipe.yaml"
    file.write_text(GOOD.replace(old, new))
    caught = refusal(what, load_recipe, file)
    assert (type(caught), caught.file, caught.line) == (SpecError, str(file), line)
    assert "tasks schema" not in caught.hint


def test_the_good_recipe_loads_and_overrides_follow_the_same_rules(tmp_path: Path) -> None:
    file = tmp_path / "recipe.yaml"
    file.write_text(GOOD)
    assert load_recipe(file).phases[0].tokens == 10_000
    two = "phases=[{name: one, objective: clm, tokens: 5}, {name: two, objective: clm, tokens: 5}]"
    changed = load_recipe(file, ["seeds.data=7", "reuse={run: x, through: one}", two])
    assert changed.seeds.data == 7
    assert changed.reuse is not None
    refusal("unknown key 'dat'", load_recipe, file, ["seeds.dat=7"])
    assert "toy_detour" in refusal("no recipe 'toy_detor'", load_recipe, "toy_detor").hint


def test_a_wrong_override_is_blamed_and_not_the_recipe(tmp_path: Path) -> None:
    what = (
        "--set batch.micro=2 --set phases.0.tokens=20k: phases.0: phase 'detour' warms up over "
        "40k of 20k tokens"
    )
    assert (
        str(refusal(what, load_recipe, "toy_detour", ["batch.micro=2", "phases.0.tokens=20k"]))
        == what
    )
    own = tmp_path / "own.yaml"
    own.write_text(GOOD.replace("sequences: 8", "sequences: eight"))
    assert refusal("eight", load_recipe, own, ["optimizer.beta2=0.9"]).file == str(own)


NOTES = [f"Note {i}: the patient has fever and a cough." * (1 + i % 5) for i in range(40)]


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    path = tmp_path / "notes.jsonl"
    path.write_text(
        "".join(json.dumps({"id": "x", "body": t}) + "\n" for t in NOTES), encoding="utf-8"
    )
    return path


def test_the_recipe_loads_and_its_twin_differs_in_the_objective_alone(
    corpus: Path, tmp_path: Path
) -> None:
    path = write_recipe(corpus, "org/base", tmp_path / "recipes", "mine", field="body")
    detour, twin = (api.load_recipe(path, arms=arms) for arms in ((), ("twin",)))
    assert (detour.name, twin.name) == ("mine", "mine_twin")
    changed = differences(training_fields(detour), training_fields(twin))
    assert changed == ["phases.0.name", "phases.0.objective", "phases.0.masking"]
    assert detour.corpus.sources[0].field == "body"
    assert detour.phases[0].tokens == pytest.approx(sum(map(len, NOTES)) / 4, rel=0.05)
    assert (detour.corpus.sequence_length, detour.batch.sequences) == (128, 4)


@pytest.mark.parametrize(("copies", "held_out"), [(1, 0.2), (3, 0.07), (40, 0.01)])
def test_what_is_held_out_fills_two_windows_and_is_a_hundredth_of_a_large_corpus(
    copies: int, held_out: float, corpus: Path, tmp_path: Path
) -> None:
    corpus.write_text(corpus.read_text(encoding="utf-8") * copies, encoding="utf-8")
    recipe = api.load_recipe(write_recipe(corpus, "org/base", tmp_path, "mine", field="body"))
    assert recipe.corpus.held_out == held_out


def test_a_base_on_this_machine_bounds_the_window_and_is_planned(tmp_path: Path) -> None:
    base = write(tmp_path / "base", seed=1)
    corpus = tmp_path / "long.jsonl"
    corpus.write_text(json.dumps({"text": "word " * 5_000}) + "\n", encoding="utf-8")
    path = write_recipe(corpus, str(base), tmp_path, "long", tokens="3k")
    recipe = api.load_recipe(str(path))
    assert recipe.corpus.sequence_length == 128, "the base's positions"
    assert recipe.phases[0].tokens == 3000
    assert api.plan(recipe).phases[0].steps == 6


def test_a_base_without_a_prediction_head_is_refused_before_anything_is_made(
    tmp_path: Path, corpus: Path
) -> None:
    base = write(tmp_path / "base", seed=1)
    path = write_recipe(corpus, str(base), tmp_path, "mine", field="body")
    AutoModel.from_pretrained(base).save_pretrained(base)
    words = "no prediction head: 'decoder.bias' is missing"
    refusal(words, write_recipe, corpus, str(base), tmp_path, "other", field="body")
    refusal(words, api.plan, path)
    refusal(words, api.checked, api.load_recipe(path))


def test_nothing_is_overwritten_and_bad_input_is_named(corpus: Path, tmp_path: Path) -> None:
    def refused(what: str, source: Path = corpus, name: str = "b", **options: str) -> None:
        base = options.pop("base", "org/base")
        refusal(what, write_recipe, source, base, tmp_path, name, **{"field": "body", **options})

    (tmp_path / "mine.yaml").write_text("name: mine")
    (tmp_path / "config.json").write_text('{"model_type": "t5"}')
    (tmp_path / "empty.txt").write_text(" \n")
    refused(r"mine\.yaml exists", name="mine")
    refused("'3Q' is no amount", tokens="3Q")
    refused("no such file", tmp_path / "nothing")
    refused(r"no text under 'text' \(it has: body, id\)", field="text")
    refused("t5", base=str(tmp_path))
    refused("holds no text", tmp_path / "empty.txt")
    assert (tmp_path / "mine.yaml").read_text() == "name: mine"
    assert not (tmp_path / "b.yaml").exists()


def test_the_command_names_the_next_ones(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    words = ("new", corpus, "--base", "org/base", "--twin", "--field", "body", "--out", tmp_path)
    shown = call(monkeypatch, capfd, "pretrain", *words)
    assert shown.status == 0
    assert f"biobench pretrain {tmp_path / 'detour.yaml'} --out runs/detour" in shown.out
    assert (
        f"biobench pretrain {tmp_path / 'detour.yaml'} --arm twin --out runs/detour_twin"
        in shown.out
    )
    assert "biobench ledger runs/detour runs/detour_twin" in shown.out
