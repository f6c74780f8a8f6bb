"""Every field of a recipe, its arms and its JSON Schema; what was made before a field was added
keeps its hash.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from pydantic import ValidationError

from biobench.schema import yaml12
from biobench.schema.yaml12 import plain
from tests.helpers.trainer_make import GOOD, refusal
from trainer.recipe.fields import human, parse_amount
from trainer.recipe.library import arms_of, load_recipe, recipe_schema, shipped
from trainer.recipe.phases import Phase, Schedule, parse_layers
from trainer.recipe.spec import Recipe
from trainer.train.run_folder import differences, recipe_hash, training_fields

MAY_CHANGE = {
    *("name", "description", "reuse", "checkpoints", "logging"),
    *("corpus.root", "corpus.cache", "batch.micro"),
    *("engine.device", "engine.distributed", "engine.compile", "engine.precision"),
    "engine.activation_checkpointing",
}
"""What says where and how fast, not what is trained."""
REUSE = "reuse={run: x, through: detour}"


def test_a_resume_compares_all_other_fields() -> None:
    recipe = load_recipe("toy_detour", [REUSE, "corpus.cache=here", "batch.micro=2"])
    everything = recipe.model_dump(mode="json")
    assert set(differences(training_fields(recipe), everything)) == MAY_CHANGE


@pytest.mark.parametrize(
    ("override", "named"),
    [
        ("seeds.training=1", "seeds.training"),
        ("phases.1.masking.rate=0.151", "phases.1.masking.rate"),
        ("optimizer.weight_decay=1.1e-5", "optimizer.weight_decay"),
        ("phases=[{name: one, objective: clm, tokens: 5}]", "phases"),
    ],
)
def test_a_change_is_named_and_has_its_own_hash(override: str, named: str) -> None:
    plain, changed = load_recipe("toy_detour"), load_recipe("toy_detour", [override])
    assert differences(training_fields(plain), training_fields(changed)) == [named]
    assert recipe_hash(plain) != recipe_hash(changed)


def phase(tokens: int, **schedule: Any) -> Phase:
    return Phase(name="p", objective="clm", tokens=tokens, schedule=Schedule(**schedule))


def test_amounts_of_tokens_become_steps() -> None:
    made = load_recipe("toy_detour")
    assert made.step_tokens == 1024
    assert [made.steps(phase(t)) for t in (1, 1024, 1025, 2048)] == [1, 1, 2, 2]
    whole = phase(1024)
    assert [made.every(t, whole) for t in (None, 1, 1024, 1535, 1537, 2047, 2561)] == [
        None,
        1,
        1,
        1,
        2,
        2,
        3,
    ]


def test_amounts_are_written_with_a_unit() -> None:
    assert [parse_amount(t) for t in ("10B", "2.5M", "1_000", "3k", 12)] == [
        10**10,
        2_500_000,
        1000,
        3000,
        12,
    ]
    assert human(3_145_728) == "3.15M"
    for wrong in (0, "-5", "10 kilo", "0.5"):
        with pytest.raises(ValidationError):
            phase(wrong)  # type: ignore[arg-type]


def test_layers_are_ranges_with_both_ends() -> None:
    assert parse_layers("0-7") == list(range(8))
    assert parse_layers(" 3 , 1-1, 2-3") == [1, 2, 3]
    for wrong in ("", "-1", "a", "3-1", "1,,2", "1-2-3"):
        with pytest.raises(ValueError, match="layers"):
            parse_layers(wrong)


def test_shares_are_for_all_sources_and_sum_to_one() -> None:
    sources = "corpus.sources=[{id: a, path: a, share: 0.5}, {id: b, path: b%s}]"
    assert [
        s.share for s in load_recipe("toy_detour", [sources % ", share: 0.5"]).corpus.sources
    ] == [0.5, 0.5]
    for rest in (", share: 0.45", ""):
        refusal("do not sum to 1", load_recipe, "toy_detour", [sources % rest])


def test_a_branch_trains_something_itself() -> None:
    assert load_recipe("toy_detour", [REUSE]).reuse is not None
    refusal(
        "not a phase before the last", load_recipe, "toy_detour", ["reuse={run: x, through: decay}"]
    )


GOLDEN: dict[str, str] = json.loads(
    Path(__file__).with_name("golden_recipe_hashes.json").read_text()
)
"""Hashes of 58 recipes that were files of their own, by their names."""
FORMER = {
    "fr_base": "detour twin noise_twin one_rate halves reversed random_order freeze_low "
    "freeze_mid freeze_low_decay "
    "detour+decay_2p5 detour+decay_20 detour+decay_30 detour+decay_50 twin+decay_2p5 "
    "twin+decay_20 twin+decay_30 "
    "twin+decay_50",
    "fr_large": "detour twin noise_twin detour+decay_4 detour+decay_20 twin+decay_4 twin+decay_20",
    "en_base": "detour twin noise_twin 10b+detour 10b+twin",
    "en_large": "detour twin noise_twin",
    "gemma": "reverse twin",
    "biphasic": "scratch twin adapt adapt_masked",
    "toy": "noise_twin one_rate halves reversed random_order freeze_low freeze_mid "
    "freeze_low_decay decay_short "
    "decay_long antlm biphasic adapt camembert_detour gemma_reverse gemma_twin",
}
"""The arms that they are now, by the name of the base in the old name; `toy` is toy_detour."""
ARMS = {
    f"{base}_{arms.replace('+', '_')}": ("toy_detour" if base == "toy" else base, arms.split("+"))
    for base, all_arms in FORMER.items()
    for arms in all_arms.split()
} | {name: (name, []) for name in ("antlm", "toy_detour", "toy_mlm_twin")}


def test_every_older_recipe_is_an_arm_with_the_same_hash_and_its_older_name() -> None:
    assert set(ARMS) == set(GOLDEN)
    assert set(shipped()) == {base for base, _ in ARMS.values()}
    for name, (base, arms) in ARMS.items():
        assert recipe_hash(load_recipe(base, arms=arms)) == GOLDEN[name], name
        old = load_recipe(name)
        assert (old.name, recipe_hash(old)) == (name, GOLDEN[name])
        assert old.description


def test_every_arm_is_valid_under_a_name_of_its_own() -> None:
    for base in shipped():
        recipes = [load_recipe(base, arms=[arm]) for arm in arms_of(base)]
        assert len({r.name for r in recipes}) == len(recipes)
        assert all(r.name.startswith(base) or r.name == "toy_biphasic" for r in recipes)


BASE = """\
extends: toy_detour
name: mine
arms:
  short: {phases: {decay: {tokens: 20k}}}
  masked: {extends: short, phases: {detour: {name: all, objective: mlm, masking: {rate: 0.3}}}}
"""


def test_arms_are_laid_over_the_base_in_turn_and_phases_are_changed_by_name(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(BASE)
    recipe = load_recipe(file, ["seeds.data=1"], ["masked"])
    assert (recipe.name, recipe.seeds.data) == ("mine_masked", 1)
    phases = [(p.name, p.objective, p.tokens) for p in recipe.phases]
    assert phases == [("all", "mlm", 300_000), ("decay", "mlm", 20_000)]
    both = load_recipe(file, arms=["short", "masked"])
    assert (both.name, both.phases) == ("mine_short_masked", recipe.phases)
    child = tmp_path / "child.yaml"
    child.write_text("extends: toy_noise_twin\nname: child\nphases: {masked: {tokens: 50k}}\n")
    recipe = load_recipe(child)
    assert (recipe.seeds.training, recipe.phases[0].tokens) == (42, 50_000)


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        (
            "{decay: {tokens: 20k}}",
            "{decoy: {tokens: 20k}}",
            ":4: there is no phase 'decoy' to change",
        ),
        ("tokens: 20k", "tokens: 20 kilo", ":4: arm 'short': phases.tokens: '20 kilo' is not"),
        ("{extends: short, ", "{extends: masked, ", ":5: arm 'masked' must extend another arm"),
        ("{extends: short, ", "{extends: shirt, ", ":5: arm 'masked' must extend another arm"),
        (
            "  short: {phases: {decay: {tokens: 20k}}}",
            "  short: 3",
            ":4: arms must be named groups of fields",
        ),
    ],
)
def test_a_mistake_in_an_arm_is_one_line_with_its_place(
    old: str, new: str, what: str, tmp_path: Path
) -> None:
    file = tmp_path / "mine.yaml"
    assert old in BASE
    file.write_text(BASE.replace(old, new))
    refusal(what, load_recipe, file, arms=["short" if "arm 'masked'" not in what else "masked"])


def test_an_unknown_arm_is_refused_with_the_known_ones() -> None:
    assert (
        "'twin'" in refusal("'fr_base' has no arm 'twn'", load_recipe, "fr_base", arms=["twn"]).hint
    )
    refusal("'toy_mlm_twin' has no arm 'twin'", load_recipe, "toy_mlm_twin", arms=["twin"])


def test_later_fields_are_written_only_when_they_say_something() -> None:
    plain = load_recipe("toy_detour")
    assert "deterministic" not in plain.model_dump(mode="json")["engine"]
    chosen = load_recipe("toy_detour", ["engine.deterministic=true"])
    assert chosen.model_dump(mode="json")["engine"]["deterministic"] is True
    again = Recipe.model_validate_json(chosen.model_dump_json())
    assert again == chosen
    assert recipe_hash(again) == recipe_hash(plain), "the machine's business"


EXTENDING = "extends: toy_detour\nname: mine\nbatch: {micro: 2}\noptimizer: {beta2: 0.95}\n"


def complaints(text: str) -> list[str]:
    schema: dict[str, Any] = recipe_schema()
    Draft202012Validator.check_schema(schema)
    found = Draft202012Validator(schema).iter_errors(plain(yaml12.parse(text).data))
    return [f"{error.json_path}: {error.message}" for error in found]


@pytest.mark.parametrize("name", sorted(shipped()))
def test_every_shipped_recipe_fits_the_schema(name: str) -> None:
    assert complaints(Path(shipped()[name]).read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    ("text", "old", "new", "what"),
    [
        (GOOD, "batch:", "bacth:", "bacth"),
        (GOOD, "tokens: 10k", "tokens: 10 kilo", "10 kilo"),
        (GOOD, "tokens: 10k", "tokens: 0", "0 is less than the minimum"),
        (EXTENDING, "micro", "mikro", "mikro"),
        (EXTENDING, "extends: toy_detour", "extends: [toy_detour]", "is not of type 'string'"),
        (EXTENDING, "batch: {micro: 2}", "arms: {low: {phases: {a: {tokns: 2}}}}", "tokns"),
    ],
)
def test_mistakes_do_not(text: str, old: str, new: str, what: str) -> None:
    assert old in text
    assert any(what in complaint for complaint in complaints(text.replace(old, new)))
