"""The card of an exported model names the classes and the hub task that fit its direction."""

from __future__ import annotations

import re

import pytest

from tests.helpers.ledger_make import ledger
from trainer.export import model_card
from trainer.recipe.library import load_recipe


@pytest.mark.parametrize(
    ("architecture", "objective", "auto", "pipeline", "said"),
    [
        ("ModernBertForMaskedLM", "clm", "AutoModelForMaskedLM", "feature-extraction", "last phase was causal"),
        ("ModernBertForMaskedLM", "mlm", "AutoModelForMaskedLM", "fill-mask", ""),
        ("Gemma3ForCausalLM", "clm", "AutoModelForCausalLM", "text-generation", ""),
        ("Gemma3ForCausalLM", "mlm", "AutoModelForCausalLM", "feature-extraction", "last phase was masked"),
    ],
)
def test_the_card_names_the_classes_that_load_the_model(
    architecture: str, objective: str, auto: str, pipeline: str, said: str
) -> None:
    masking = "masking: {rate: 0.3}, " if objective == "mlm" else ""
    phases = f"phases=[{{name: one, objective: {objective}, {masking}tokens: 800}}]"
    run = ledger("a", objective)
    held = run.model_copy(update={"base": run.base.model_copy(update={"architecture": architecture})})
    card = model_card(load_recipe("toy_detour", [phases]), held)
    assert f"pipeline_tag: {pipeline}\n" in card
    assert re.findall(r"`(Auto\w+)`", card) == ["AutoModel", auto]
    assert said in card
    assert said or "while these classes" not in card
