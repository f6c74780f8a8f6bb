"""Optimisers beside AdamW, spikes, z-loss, trackers that go on, and what passes between processes."""

from __future__ import annotations

import json
import logging
import sys
import types
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from tests.helpers.pretrain_models import tiny
from trainer import api
from trainer.ledger import read_ledger
from trainer.model import loss
from trainer.model.loss import linear_cross_entropy_sum
from trainer.model.network import Trainee
from trainer.recipe.spec import Optimizer
from trainer.train import fit
from trainer.train.distributed import World
from trainer.train.fit import is_spike
from trainer.train.optimizer import StableAdamW, Together, make_optimizer, named_state, set_rate
from trainer.train.progress import make_tracker, read_metrics

SPEC = Optimizer(learning_rate=1e-2)


def test_stable_adamw_is_adamw_where_nothing_is_off() -> None:
    """A gradient that stays as it is has the ratio 1 from the first step on, so nothing is clipped."""
    torch.manual_seed(0)
    start, gradient = torch.randn(5, 4), torch.randn(5, 4)
    ends = []
    for kind in (torch.optim.AdamW, StableAdamW):
        p = nn.Parameter(start.clone())
        optimizer = kind([p], lr=0.1, betas=(0.9, 0.98), eps=1e-12, weight_decay=0.01)
        for _ in range(5):
            p.grad = gradient.clone()
            optimizer.step()
        ends.append(p.detach())
    torch.testing.assert_close(*ends)


def test_stable_adamw_takes_a_smaller_step_after_a_surprise() -> None:
    p = nn.Parameter(torch.zeros(4))
    optimizer = StableAdamW([p], lr=0.1, betas=(0.9, 0.98), eps=1e-12, weight_decay=0.0)
    for _ in range(50):
        p.grad = torch.full((4,), 1e-3)
        optimizer.step()
    before = p.detach().clone()
    p.grad = torch.ones(4)
    optimizer.step()
    m = 0.1 * 1.0 + 0.9 * 1e-3 * (1 - 0.9**50)
    v = 0.02 * 1.0 + 0.98 * 1e-6 * (1 - 0.98**50)
    m, v = m / (1 - 0.9**51), v / (1 - 0.98**51)
    expected = 0.1 / (1 / v**0.5) * m / v**0.5
    torch.testing.assert_close(before - p.detach(), torch.full((4,), expected), rtol=1e-4, atol=1e-8)
    assert expected < 0.1 * m / v**0.5 / 5


def test_muon_has_the_layers_matrices_and_adamw_the_rest() -> None:
    model = tiny("modernbert")
    optimizer = make_optimizer(model, SPEC.model_copy(update={"kind": "muon"}))
    assert isinstance(optimizer, Together)
    muon, adam = optimizer.parts
    names = {id(p): name for name, p in model.named_parameters()}
    first, second = ({names[id(p)] for g in part.param_groups for p in g["params"]} for part in (muon, adam))
    assert not first & second
    assert first | second == set(names.values())
    assert all("layers." in name for name in first)
    assert {n for n in second if "layers." in n} == {n for n in second if "norm" in n and "layers." in n}
    assert any("embeddings" in name for name in second)
    set_rate(optimizer, 0.5)
    assert {g["lr"] for part in optimizer.parts for g in part.param_groups} == {0.5}
    ids = torch.arange(3, 40)[None]
    Trainee(model)(ids, torch.arange(37), ids[0], causal=True).backward()
    optimizer.step()
    kept = named_state(model, optimizer)
    assert {k.rpartition("/")[2] for k in kept} == {"momentum_buffer", "exp_avg", "exp_avg_sq", "step"}
    optimizer.zero_grad()
    assert all(p.grad is None for p in model.parameters())


@pytest.mark.parametrize("kind", ["muon", "stable_adamw"])
def test_a_resume_gives_the_uninterrupted_run(kind: str, small: list[str], tmp_path: Path) -> None:
    fields = [*small, f"optimizer.kind={kind}", "checkpoints.every=1920", "optimizer.skip_spikes=50"]
    whole = api.pretrain("toy_detour", out=tmp_path / "whole", overrides=fields, progress="none")
    losses = [r["loss"] for r in read_metrics(tmp_path / "whole" / "metrics.jsonl") if r["event"] == "train"]
    assert losses[11] < losses[0]

    def kill(tick: Any) -> None:
        if tick.done == 7:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        api.pretrain("toy_detour", out=tmp_path / "cut", overrides=fields, progress=kill)
    again = api.pretrain("toy_detour", out=tmp_path / "cut", overrides=fields, progress="none", resume=True)
    assert whole.ledger is not None
    assert again.ledger is not None
    assert again.ledger.model_hash == whole.ledger.model_hash
    assert whole.ledger.optimizer["kind"] == kind


def test_what_a_spike_is() -> None:
    assert not is_spike(100.0, [1.0] * 9, 4)
    assert is_spike(4.1, [1.0] * 10, 4)
    assert not is_spike(4.0, [1.0] * 10, 4)
    assert is_spike(float("nan"), [], 4)
    assert is_spike(float("inf"), [1.0], 4)


def test_a_spike_is_skipped_and_told(
    small: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    real = fit._clip
    calls: list[int] = []

    def clip(module: nn.Module, limit: float | None) -> Tensor:
        norm = real(module, limit)
        calls.append(1)
        return torch.tensor(float("nan")) if len(calls) == 11 else norm * 1000 if len(calls) == 14 else norm

    monkeypatch.setattr(fit, "_clip", clip)
    with caplog.at_level(logging.WARNING, "trainer"):
        result = api.pretrain(
            "toy_detour", out=tmp_path / "run", overrides=[*small, "optimizer.skip_spikes=20"], progress="none"
        )
    assert result.ledger is not None
    assert [p.skipped_steps for p in result.ledger.phases] == [1, 1]
    spikes = [r for r in read_metrics(tmp_path / "run" / "metrics.jsonl") if r["event"] == "spike"]
    assert [s["total_step"] for s in spikes] == [11, 14]
    assert spikes[0]["gradient_norm"] is None
    assert "step 11 of phase 'detour' skipped" in caplog.text
    diff = api.ledger_diff(tmp_path / "run", tmp_path / "run")
    assert [r.first for r in diff.rows if r.name == "phase 1 skipped steps"] == ["1"]


@pytest.mark.parametrize("softcap", [None, 5.0])
@pytest.mark.parametrize("kind", [torch.float32, torch.bfloat16])
def test_z_loss_is_that_of_full_logits(softcap: float | None, kind: torch.dtype) -> None:
    torch.manual_seed(0)
    hidden, weight = torch.randn(50, 8), torch.randn(30, 8)
    targets = torch.randint(0, 30, (50,))
    targets[::7] = loss.IGNORE
    made = []
    for ours in (True, False):
        h, w = (x.to(kind).requires_grad_() for x in (hidden, weight))
        if ours:
            value = linear_cross_entropy_sum(h, w, None, targets, softcap=softcap, chunk=16, z_loss=0.1)
        else:
            logits = h.float() @ w.float().t()
            logits = logits if softcap is None else softcap * torch.tanh(logits / softcap)
            plain = nn.functional.cross_entropy(logits, targets, ignore_index=loss.IGNORE, reduction="sum")
            value = plain + 0.1 * (logits.logsumexp(1).square() * (targets != loss.IGNORE)).sum()
        value.backward()
        made.append((value.detach(), h.grad, w.grad))
    close = {"rtol": 1e-4, "atol": 1e-4} if kind == torch.float32 else {"rtol": 5e-2, "atol": 5e-1}
    for a, b in zip(*made, strict=True):
        torch.testing.assert_close(a.float(), b.float(), **close)


def test_z_loss_is_of_training_alone() -> None:
    module = Trainee(tiny("bert"))
    ids = torch.arange(3, 40)[None]
    values = {}
    for z in (0.0, 0.5):
        module.z_loss = z
        for training in (True, False):
            module.train(training)
            for m in module.modules():
                if isinstance(m, nn.Dropout):
                    m.p = 0.0
            values[z, training] = float(module(ids, torch.arange(37), ids[0], causal=False).detach())
    assert values[0.5, False] == values[0.0, False]
    assert values[0.5, True] > values[0.0, True] + 1


def test_the_weights_gradient_is_added_in_place_where_the_gpu_can(monkeypatch: pytest.MonkeyPatch) -> None:
    """A substitute in the signature of `aten::addmm.dtype_out`, which a CPU does not have for bf16."""
    asked: list[tuple[torch.dtype, ...]] = []

    def dtype_out(self: Tensor, mat1: Tensor, mat2: Tensor, out_dtype: torch.dtype, *, beta: float = 1,
                  alpha: float = 1, out: Tensor) -> Tensor:  # fmt: skip
        asked.append((mat1.dtype, out_dtype, out.dtype))
        return torch.add(self, mat1.float() @ mat2.float(), out=out)

    def grads() -> Tensor:
        torch.manual_seed(0)
        hidden, weight = torch.randn(40, 8).bfloat16(), torch.randn(30, 8, requires_grad=True)
        linear_cross_entropy_sum(hidden, weight, None, torch.arange(40) % 30, chunk=16).backward()
        assert weight.grad is not None
        return weight.grad

    plain = grads()
    assert not asked
    monkeypatch.setattr(loss, "MIXED", dtype_out)
    monkeypatch.setattr(loss, "_MIXED_ON", ("cuda", "cpu"))
    torch.testing.assert_close(grads(), plain, rtol=2e-2, atol=2e-2)
    assert asked == [(torch.bfloat16, torch.float32, torch.float32)] * 3


@pytest.mark.parametrize("kind", ["wandb", "trackio"])
def test_a_resumed_run_goes_on_in_its_tracker(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Substitutes with the arguments that both trackers document: wandb resumes by id, trackio by name."""
    started: list[dict[str, Any]] = []
    module = types.ModuleType(kind)

    def wandb_init(*, project: str, name: str, config: dict[str, Any], id: str, resume: str) -> None:
        started.append({"key": id, "resume": resume, "name": name})

    def trackio_init(project: str, name: str | None = None, config: dict[str, Any] | None = None,
                     resume: str = "never") -> None:  # fmt: skip
        started.append({"key": name, "resume": resume, "name": name})

    module.init = wandb_init if kind == "wandb" else trackio_init  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, kind, module)
    monkeypatch.setattr("trainer.train.progress.find_spec", lambda _: object())
    for _ in range(2):
        make_tracker(kind, tmp_path / "a", "mine", {}) if (tmp_path / "a").mkdir(exist_ok=True) is None else None
    (tmp_path / "b").mkdir()
    make_tracker(kind, tmp_path / "b", "mine", {})
    first, second, other = started
    assert first["key"] == second["key"] != other["key"]
    assert {s["resume"] for s in started} == {"allow"}
    assert json.loads((tmp_path / "a" / "tracker.json").read_text()) == {kind: first["key"]}


def test_a_step_waits_for_no_gpu_to_count_targets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several processes: the counts pass as CPU tensors through the host's group, never through the device's."""
    sent: list[tuple[torch.device, object]] = []

    def all_reduce(tensor: Tensor, op: object = None, group: object = None) -> None:
        sent.append((tensor.device, group))
        tensor *= 2

    monkeypatch.setattr("torch.distributed.all_reduce", all_reduce)
    group: Any = object()
    assert World(0, 2, torch.device("cuda", 0), group).sums(21, 0) == [42, 0]
    assert sent == [(torch.device("cpu"), group)]
    assert World(0, 1, torch.device("cpu")).sums(3, 1) == [3, 1]


def test_the_ledger_holds_the_machine(small: list[str], tmp_path: Path) -> None:
    api.pretrain("toy_detour", out=tmp_path / "run", overrides=small, progress="none")
    held = read_ledger(tmp_path / "run")
    assert (held.device, held.compiled, held.deterministic, held.micro_windows) == ("cpu", False, False, 8)
    assert held.phases[0].kernels == {"full_attention": "sdpa", "sliding_attention": "dense"}
    assert "kind" not in held.optimizer
