"""What a recipe costs, by hand; what a plan counts and refuses; and the speed of a machine through
the real loop.
"""

from __future__ import annotations

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from biobench.errors import ModelError, UsageError
from tests.helpers.pretrain_models import tiny
from trainer import api
from trainer.cost.flops import PEAK, peak_of, token_cost
from trainer.model.network import Trainee


@pytest.mark.parametrize(
    ("length", "causal", "keys"),
    [
        # two global and two local layers of 8 keys each way and self
        (100, False, 2 * 100 + 2 * 17),
        (100, True, 2 * 50.5 + 2 * 9),
        (12, False, 2 * 12 + 2 * 12),
        (12, True, 2 * 6.5 + 2 * 9),
        (5, True, 2 * 3 + 2 * 5),
    ],
)
def test_attention_costs_its_keys(length: int, causal: bool, keys: float) -> None:
    _, cost, _ = token_cost(tiny("modernbert"), length=length, causal=causal, predicted=1.0)
    assert cost == pytest.approx(3 * 4 * 32 * keys)


@pytest.mark.parametrize("kind", ["modernbert", "bert", "roberta", "eurobert", "gemma3_text"])
@pytest.mark.parametrize("predicted", [1.0, 0.25])
def test_linear_parts_are_what_torch_counts(kind: str, predicted: float) -> None:
    """torch counts matrix products as they run; attention on a CPU is none to it."""
    module = Trainee(tiny(kind))
    tokens, count = 64, int(64 * predicted)
    ids, places = torch.arange(5, 69)[None], torch.arange(count)
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        module(ids, places, torch.ones(count, dtype=torch.long), causal=True)
    by_kind = {str(k): v for k, v in counter.get_flop_counts()["Global"].items()}
    products = sum(v for k, v in by_kind.items() if "attention" not in k)
    linear, _, head = token_cost(module.model, length=tokens, causal=True, predicted=predicted)
    assert (linear + head) / 3 * tokens == pytest.approx(products, rel=1e-3)


def test_heads_may_be_wider_than_their_share() -> None:
    model = tiny("gemma3_text")
    model.config.head_dim = 20
    # six layers, the last global; 4 heads of 20
    assert token_cost(model, length=40, causal=True, predicted=1.0)[1] == 12 * 4 * 20 * (
        5 * 16 + 20.5
    )


def test_time_is_operations_over_the_expected_part_of_the_peak() -> None:
    one, four = (
        api.plan("en_base_detour", gpu="H100", gpus=n, overrides=["batch.micro=null"])
        for n in (1, 4)
    )
    assert one.seconds == pytest.approx(one.flops / (989e12 * 0.35))
    assert one.seconds == pytest.approx(four.seconds * 4)
    assert one.flops == pytest.approx(sum(p.flops_per_token * p.tokens for p in one.phases))
    assert one.steps == 15895 + 1590  # 50B and 5B tokens by 384 x 8192
    assert (one.micro_windows, four.micro_windows) == (384, 96)
    assert one.state_bytes == four.state_bytes == 18 * one.parameters
    sharded = api.plan("en_base_detour", gpu="H100", gpus=4, overrides=["engine.distributed=fsdp2"])
    assert sharded.state_bytes == 16 * one.parameters // 4 + 2 * one.parameters
    exact = api.plan("en_base_detour", overrides=["engine.precision=fp32", "batch.micro=8"])
    assert exact.state_bytes == 16 * one.parameters
    assert exact.micro_windows == 8
    assert sum(p.tokens for p in one.phases) == one.tokens == (15895 + 1590) * one.step_tokens


def test_activation_checkpointing_keeps_inputs_and_one_layer() -> None:
    plain, saving = (
        api.plan(
            "en_base_detour", overrides=["batch.micro=8", f"engine.activation_checkpointing={on}"]
        )
        for on in ("false", "true")
    )
    tokens, inputs = 8 * 8192, 4 * 768 * 22
    # a layer of ModernBERT-base in bf16: 12 of its width, 12 of its heads, and twice what the MLP
    # is wide
    one = 12 * 768 + 12 * 768 + 2 * 3 * 1152
    assert (plain.memory_bytes - saving.memory_bytes) / tokens == pytest.approx(
        21 * one - inputs, rel=1e-6
    )


def test_peaks_are_dense_bf16_by_the_data_sheets() -> None:
    assert PEAK["H100"] == PEAK["H200"] == 989e12
    assert PEAK["A100"] == 312e12
    assert peak_of("NVIDIA H200") == 989e12
    assert peak_of("nvidia a100-sxm4-80gb") == 312e12
    assert peak_of("NVIDIA GeForce GTX 1060") is None


def test_phases_taken_over_are_not_counted(small: list[str]) -> None:
    whole = api.plan("toy_detour", overrides=small)
    rest = api.plan("toy_detour", overrides=[*small, "reuse={run: donor, through: detour}"])
    assert rest.phases == whole.phases[1:]
    assert (rest.reused, whole.reused) == (("detour",), ())
    (second,) = rest.phases
    assert (rest.steps, rest.tokens, rest.flops) == (second.steps, second.tokens, second.flops)
    assert "detour: taken over, not trained again" in "\n".join(rest.lines())


@pytest.mark.parametrize(
    ("overrides", "gpus", "kind", "said"),
    [
        ([], 5, UsageError, "8 windows a step cannot be shared by 5 GPUs"),
        (
            ["phases.0.freeze.layers=2-9"],
            1,
            ModelError,
            "layer 9 cannot be frozen: the model has layers 0-2",
        ),
        (["phases.1.freeze.layers=3"], 1, ModelError, "layer 3 cannot be frozen"),
        (
            ["corpus.sequence_length=1024"],
            1,
            ModelError,
            "windows of 1024 tokens are longer than the model's 512",
        ),
    ],
)
def test_what_training_refuses_is_not_planned(
    small: list[str], overrides: list[str], gpus: int, kind: type[Exception], said: str
) -> None:
    with pytest.raises(kind, match=said):
        api.plan("toy_detour", overrides=[*small, "batch.sequences=8", *overrides], gpus=gpus)


def test_speed_and_parts_of_each_phase(small: list[str]) -> None:
    speed = api.bench("toy_detour", overrides=small, steps=4)
    assert [(p.name, p.objective) for p in speed.phases] == [("detour", "clm"), ("decay", "mlm")]
    for phase in speed.phases:
        assert phase.tokens_per_second > 0
        assert phase.utilisation is None, "no data sheet of a CPU"
        shares = list(phase.parts.values())
        assert sum(shares) == pytest.approx(1.0)
        assert len(shares) == 5
        assert shares == sorted(shares, reverse=True)
        assert shares[-1] > 0, "every part of a step was seen"
    assert speed.lines()[0] == "toy_detour on cpu"
    assert "tokens/s; " in speed.lines()[1]
