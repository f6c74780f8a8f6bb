"""Every field of a recipe: what it is when nothing is said, what it may be, and whether a resume may change it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import ValidationError

from biobench.errors import BioBenchError, SpecError
from trainer.recipe.fields import human, parse_amount
from trainer.recipe.library import load_recipe
from trainer.recipe.phases import Phase, Schedule, parse_layers
from trainer.recipe.spec import Checkpoints, Recipe
from trainer.train.run_folder import differences, recipe_hash, training_fields

MAY_CHANGE = {
    *("name", "description", "reuse", "reuse.run", "reuse.through", "corpus.root", "corpus.cache", "batch.micro"),
    *("engine.device", "engine.distributed", "engine.compile", "engine.activation_checkpointing", "engine.precision"),
    *("checkpoints.every", "checkpoints.keep", "checkpoints.keep_phases", "checkpoints.export"),
    *("logging.every", "logging.evaluate"),
}
"""What says where and how fast, not what is trained."""
REUSE = "reuse={run: x, through: detour}"


def leaves(value: Any, at: str = "") -> Iterator[str]:
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from leaves(inner, f"{at}.{key}" if at else key)
    elif isinstance(value, list) and value:
        for number, inner in enumerate(value):
            yield from leaves(inner, f"{at}.{number}")
    else:
        yield at


def test_a_resume_compares_all_other_fields() -> None:
    recipe = load_recipe("toy_detour", [REUSE])
    everything, compared = (set(leaves(fields)) for fields in (recipe.model_dump(mode="json"), training_fields(recipe)))
    assert compared == everything - MAY_CHANGE
    assert {"seeds.training", "engine.dropout", "optimizer.gradient_clip", "phases.1.masking.rate"} <= compared


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


def test_what_may_change_leaves_the_hash() -> None:
    free = ["name=x", "batch.micro=2", "engine.precision=bf16", "checkpoints.keep=7", "logging.every=3", REUSE]
    assert recipe_hash(load_recipe("toy_detour")) == recipe_hash(load_recipe("toy_detour", free))


def phase(tokens: int, **schedule: Any) -> Phase:
    return Phase(name="p", objective="clm", tokens=tokens, schedule=Schedule(**schedule))


def test_warm_up_and_cooldown_fit_the_phase() -> None:
    assert phase(100, warmup=99).schedule.warmup == 99
    assert phase(100, shape="linear", warmup=40, cooldown=60).schedule.cooldown == 60
    for wrong in ({"warmup": 100}, {"shape": "linear", "warmup": 40, "cooldown": 61}, {"cooldown": 10}):
        with pytest.raises((ValidationError, BioBenchError)):
            phase(100, **wrong)


def recipe(**checkpoints: Any) -> Recipe:
    return load_recipe("toy_detour").model_copy(update={"checkpoints": Checkpoints(**checkpoints)})


def test_amounts_of_tokens_become_steps() -> None:
    made = recipe(every=1024 * 3, export=True)
    assert made.step_tokens == 1024
    assert [made.steps(phase(t)) for t in (1, 1024, 1025, 2048)] == [1, 1, 2, 2]
    whole = phase(1024)
    assert [made.every(t, whole) for t in (None, 1, 1024, 1535, 1537, 2047, 2561)] == [None, 1, 1, 1, 2, 2, 3]
    assert [s for s in range(10) if made.exports_at(s, whole)] == [3, 6, 9]
    assert not any(recipe(every=1024).exports_at(s, whole) for s in range(5))
    assert not any(recipe(export=True).exports_at(s, whole) for s in range(5))


def test_amounts_are_written_with_a_unit() -> None:
    assert [parse_amount(t) for t in ("10B", "2.5M", "1_000", "3k", 12)] == [10**10, 2_500_000, 1000, 3000, 12]
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
    assert [s.share for s in load_recipe("toy_detour", [sources % ", share: 0.5"]).corpus.sources] == [0.5, 0.5]
    for rest in (", share: 0.45", ""):
        with pytest.raises(SpecError, match="do not sum to 1"):
            load_recipe("toy_detour", [sources % rest])


def test_a_branch_trains_something_itself() -> None:
    assert load_recipe("toy_detour", [REUSE]).reuse is not None
    with pytest.raises(SpecError, match="not a phase before the last"):
        load_recipe("toy_detour", ["reuse={run: x, through: decay}"])
