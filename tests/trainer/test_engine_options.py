"""Options of the engine: checkpoints in the background, compiled loss, bf16 between layers and between processes."""

from __future__ import annotations

import time
from concurrent.futures import Future
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
import torch

from biobench.errors import StoreError
from tests.helpers.two_processes import GOLDEN, curve, two_processes
from trainer import api
from trainer.ledger import compare, read_ledger
from trainer.model import loss as loss_module
from trainer.model.families import layers_of
from trainer.model.loss import IGNORE, linear_cross_entropy_sum
from trainer.train import checkpoint as checkpoint_module
from trainer.train import phase as phase_module
from trainer.train.progress import Tick

BACKGROUND = ["checkpoints.every=768", "checkpoints.background=true"]


class KilledError(Exception):
    """A kill."""


def test_a_run_with_checkpoints_in_the_background_continues_bit_for_bit(small: list[str], tmp_path: Path) -> None:
    whole = api.pretrain("toy_detour", out=tmp_path / "whole", overrides=small, progress="none")

    def kill(tick: Tick) -> None:
        if tick.done >= 8:
            raise KilledError

    overrides = [*small, *BACKGROUND]
    with pytest.raises(KilledError):
        api.pretrain("toy_detour", out=tmp_path / "cut", overrides=overrides, progress=kill)
    latest = (tmp_path / "cut" / "checkpoints" / "latest").read_text().strip()
    assert latest in ("step-00000004", "step-00000006"), "a checkpoint counts once it is whole"
    again = api.pretrain("toy_detour", out=tmp_path / "cut", overrides=overrides, progress="none", resume=True)
    assert again.ledger is not None
    assert whole.ledger is not None
    assert again.ledger.model_hash == whole.ledger.model_hash


def test_a_run_that_ends_by_an_error_leaves_nothing_that_is_still_written(
    small: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A writer that outlives its run would write into the folder of the run that continues it."""
    real, late = checkpoint_module.async_save, []

    def slow(state: dict[str, Any], **options: Any) -> Future[Any]:
        future: Future[Any] = Future()

        def write() -> None:
            time.sleep(0.5)
            real(state, **options).result()
            late.append(options["checkpoint_id"])
            future.set_result(None)

        Thread(target=write).start()
        return future

    def kill(tick: Tick) -> None:
        if tick.done >= 3:
            raise KilledError

    monkeypatch.setattr(checkpoint_module, "async_save", slow)
    with pytest.raises(KilledError):
        api.pretrain("toy_detour", out=tmp_path / "cut", overrides=[*small, *BACKGROUND], progress=kill)
    assert [folder.name for folder in late] == ["step-00000002.tmp"], "the writer was waited for"
    assert not list((tmp_path / "cut" / "checkpoints").iterdir())


def test_the_copy_is_of_the_step_and_not_of_later_ones(
    small: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The files are written while the weights go on changing."""
    states: list[dict[str, torch.Tensor]] = []
    real = checkpoint_module.async_save

    def watched(state: dict[str, Any], **options: Any) -> Any:
        states.append({k: v.clone() for k, v in state.items() if isinstance(v, torch.Tensor)})
        return real(state, **options)

    monkeypatch.setattr(checkpoint_module, "async_save", watched)
    overrides = [*small, *BACKGROUND, "checkpoints.keep=9"]
    api.pretrain("toy_detour", out=tmp_path / "run", overrides=overrides, progress="none")
    folder = tmp_path / "run" / "checkpoints" / "step-00000004"
    blank = {k: torch.zeros_like(v) for k, v in states[1].items()}
    checkpoint_module.load(blank, checkpoint_id=folder, no_dist=True)
    assert all(torch.equal(blank[k], v) for k, v in states[1].items())


def test_an_error_in_the_background_stops_the_run(
    small: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(state: dict[str, Any], **options: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_exception(OSError(28, "No space left on device"))
        return future

    monkeypatch.setattr(checkpoint_module, "async_save", failing)
    with pytest.raises(StoreError, match="disk is full"):
        api.pretrain("toy_detour", out=tmp_path / "run", overrides=[*small, *BACKGROUND], progress="none")
    assert not list((tmp_path / "run" / "checkpoints").glob("*.tmp"))


@pytest.mark.slow
def test_two_processes_write_in_the_background(small: list[str], tmp_path: Path) -> None:
    two_processes(tmp_path / "run", [*small, *BACKGROUND, "checkpoints.keep=9", "engine.distributed=fsdp2"])
    assert curve(tmp_path / "run") == pytest.approx(GOLDEN, abs=1e-5)
    assert (tmp_path / "run" / "checkpoints" / "step-00000010" / "progress.json").is_file()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(("softcap", "z_loss", "biased"), [(None, 0.0, True), (5.0, 0.0, False), (None, 1e-2, True)])
def test_the_compiled_loss_is_the_loss(
    dtype: torch.dtype, softcap: float | None, z_loss: float, biased: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Traced and functionalised as for a GPU; the last step, the making of kernels, needs a compiler."""
    monkeypatch.setattr(loss_module, "BACKEND", "aot_eager")
    loss_module.compiled_chunk.cache_clear()
    generator = torch.Generator().manual_seed(0)
    targets = torch.randint(0, 50, (37,), generator=generator)
    targets[::5] = IGNORE
    results = []
    for compiled in (False, True):
        hidden, weight = (
            torch.randn(n, 16, generator=torch.Generator().manual_seed(n)).to(dtype).requires_grad_() for n in (37, 50)
        )
        bias = torch.linspace(-1, 1, 50).to(dtype).requires_grad_() if biased else None
        total = linear_cross_entropy_sum(
            hidden, weight, bias, targets, softcap=softcap, z_loss=z_loss, chunk=10, compiled=compiled
        )
        total.backward()  # type: ignore[no-untyped-call]
        results.append([total.detach(), hidden.grad, weight.grad, *([] if bias is None else [bias.grad])])
    loss_module.compiled_chunk.cache_clear()
    for plain, traced in zip(*results, strict=True):
        torch.testing.assert_close(traced, plain, rtol=1e-5, atol=1e-5)


def test_states_between_layers_are_bf16_where_asked(
    small: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: set[torch.dtype] = set()
    real = phase_module.prepare

    def watched(*arguments: Any, **options: Any) -> Any:
        training = real(*arguments, **options)
        for layer in layers_of(training.module.model):
            layer.register_forward_hook(
                lambda _m, _i, output: seen.add((output[0] if isinstance(output, tuple) else output).dtype)
            )
        return training

    monkeypatch.setattr("trainer.pretrain.prepare", watched)
    ledgers = []
    for residual in ("fp32", "bf16"):
        seen.clear()
        overrides = [*small, "engine.precision=bf16", f"engine.residual={residual}"]
        result = api.pretrain("toy_detour", out=tmp_path / residual, overrides=overrides, progress="none")
        assert seen == {torch.bfloat16 if residual == "bf16" else torch.float32}
        assert curve(tmp_path / residual) == pytest.approx(GOLDEN, abs=0.05)
        assert result.ledger is not None
        ledgers.append(result.ledger)
    assert [row.name for row in compare(*ledgers).differing] == ["precision"]


def test_weights_sent_in_bf16_train_and_are_named(small: list[str], tmp_path: Path) -> None:
    out = tmp_path / "run"
    options = ["engine.distributed=fsdp2", "engine.precision=bf16", "engine.gather=bf16"]
    two_processes(out, [*small, *options])
    assert curve(out) == pytest.approx(GOLDEN, abs=0.05)
    assert read_ledger(out).distributed == "fsdp2, weights sent in bf16"
