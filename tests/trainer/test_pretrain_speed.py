"""The speed comparison compares like with like, and the memory habits change no number."""

from __future__ import annotations

import torch

from tests.benchmarks import trainer_sides as bench_sides
from tests.benchmarks.trainer_speed import Speed


def test_both_sides_end_with_the_same_weights() -> None:
    spec = bench_sides.toy()
    batches = bench_sides.make_batches("mlm", 3, 2, 16, 60, spec.masking)
    ends = []
    for train, more in ((bench_sides.ours, {"kind": bench_sides.Trainee}), (bench_sides.theirs, {})):
        model = bench_sides.build({**spec.shape, "vocab_size": 60}, torch.device("cpu"))
        losses: list[float | None] = []
        train(model, batches, losses.append, causal=False, precision="fp32", optimizer=spec.optimizer, **more)
        assert [x is None for x in losses] == [False, True, True]
        ends.append(dict(model.named_parameters()))
    started = dict(bench_sides.build({**spec.shape, "vocab_size": 60}, torch.device("cpu")).named_parameters())
    for name, value in ends[0].items():
        assert not torch.equal(value, started[name])
        torch.testing.assert_close(value, ends[1][name], atol=2e-5, rtol=1e-4)


def test_the_ratio_is_the_median_of_the_turns() -> None:
    turns = ((30.0, 10.0, 40.0), (10.0, 10.0, 12.0), (16.0, 10.0, 18.0))
    speed = Speed("clm", 1600, turns, (7.0, 7.0))
    assert speed.ratios == [1.0, 1.6, 3.0]
    assert speed.bound == 1.8
    assert "16 tokens/s, HF Trainer 10, ratio 1.60 (median of 3 turns, middle half 1.30 to 2.30" in speed.line()
