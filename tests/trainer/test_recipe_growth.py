"""Recipes gain fields; what was made from recipes without them keeps its hashes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from biobench.errors import SpecError, UsageError
from trainer.recipe.library import arms_of, load_recipe, shipped
from trainer.recipe.spec import Recipe
from trainer.train.run_folder import recipe_hash

GOLDEN: dict[str, str] = json.loads(Path(__file__).with_name("golden_recipe_hashes.json").read_text())
"""Hashes of 58 recipes that were files of their own, by their names."""
FORMER = {
    "fr_base": "detour twin noise_twin one_rate halves reversed random_order freeze_low freeze_mid freeze_low_decay "
    "detour+decay_2p5 detour+decay_20 detour+decay_30 detour+decay_50 twin+decay_2p5 twin+decay_20 twin+decay_30 "
    "twin+decay_50",
    "fr_large": "detour twin noise_twin detour+decay_4 detour+decay_20 twin+decay_4 twin+decay_20",
    "en_base": "detour twin noise_twin 10b+detour 10b+twin",
    "en_large": "detour twin noise_twin",
    "gemma": "reverse twin",
    "biphasic": "scratch twin adapt adapt_masked",
    "toy": "noise_twin one_rate halves reversed random_order freeze_low freeze_mid freeze_low_decay decay_short "
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
    assert [(p.name, p.objective, p.tokens) for p in recipe.phases] == [
        ("all", "mlm", 300_000),
        ("decay", "mlm", 20_000),
    ]
    both = load_recipe(file, arms=["short", "masked"])
    assert (both.name, both.phases) == ("mine_short_masked", recipe.phases)
    child = tmp_path / "child.yaml"
    child.write_text("extends: toy_noise_twin\nname: child\nphases: {masked: {tokens: 50k}}\n")
    recipe = load_recipe(child)
    assert (recipe.seeds.training, recipe.phases[0].tokens) == (42, 50_000)


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ("{decay: {tokens: 20k}}", "{decoy: {tokens: 20k}}", ":4: there is no phase 'decoy' to change"),
        ("tokens: 20k", "tokens: 20 kilo", ":4: arm 'short': phases.tokens: '20 kilo' is not"),
        ("{extends: short, ", "{extends: masked, ", ":5: arm 'masked' must extend another arm"),
        ("{extends: short, ", "{extends: shirt, ", ":5: arm 'masked' must extend another arm"),
        ("  short: {phases: {decay: {tokens: 20k}}}", "  short: 3", ":4: arms must be named groups of fields"),
    ],
)
def test_a_mistake_in_an_arm_is_one_line_with_its_place(old: str, new: str, what: str, tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    assert old in BASE
    file.write_text(BASE.replace(old, new))
    with pytest.raises(SpecError) as caught:
        load_recipe(file, arms=["short" if "arm 'masked'" not in what else "masked"])
    assert what in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_unknown_arm_is_refused_with_the_known_ones() -> None:
    with pytest.raises(UsageError, match="'fr_base' has no arm 'twn'") as caught:
        load_recipe("fr_base", arms=["twn"])
    assert "'twin'" in caught.value.hint
    with pytest.raises(UsageError, match="'toy_mlm_twin' has no arm 'twin'"):
        load_recipe("toy_mlm_twin", arms=["twin"])


def test_later_fields_are_written_only_when_they_say_something() -> None:
    plain = load_recipe("toy_detour")
    assert "deterministic" not in plain.model_dump(mode="json")["engine"]
    chosen = load_recipe("toy_detour", ["engine.deterministic=true"])
    assert chosen.model_dump(mode="json")["engine"]["deterministic"] is True
    again = Recipe.model_validate_json(chosen.model_dump_json())
    assert again == chosen
    assert recipe_hash(again) == recipe_hash(plain), "the machine's business"
