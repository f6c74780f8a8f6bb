"""A run that is killed between any two steps and taken up again is the run that nobody killed."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
import torch

from biobench.core.stop import STOP, RunStoppedError
from biobench.finetune import features, savepoint
from biobench.finetune.engine import finetune
from biobench.finetune.loop import Outcome, Run
from biobench.finetune.savepoint import Savepoint
from biobench.finetune.tuning import tuned

CPU = torch.device("cpu")


class KilledError(BaseException):
    """Nothing below may catch it."""


@pytest.fixture(autouse=True)
def _each_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """A state after each step, however long writing it takes."""
    monkeypatch.setattr(savepoint, "_SHARE", 0.0)


def _silent(done: int, total: int, what: str) -> None:
    """No progress."""


def _killed_at(step: int, word: str = "loss") -> Any:
    """A listener that ends the run when `step` is reported the first time (its state is not written yet)."""

    def progress(done: int, total: int, what: str) -> None:
        if done == step and word in what:
            raise KilledError

    return progress


def _keep(folder: Path) -> Savepoint:
    return Savepoint(folder / "run.state", CPU, every=0.0)


def _weights(outcome: Outcome) -> dict[str, torch.Tensor]:
    assert outcome.network is not None
    return {k: v.clone() for k, v in outcome.network.state_dict().items()}


def _same(one: Outcome, weights: dict[str, torch.Tensor], other: Outcome, *, resumed: int) -> None:
    assert other.predictions == one.predictions
    assert other.record == one.record.model_copy(update={"resumed": resumed})
    assert other.train_tokens == one.train_tokens
    assert all(torch.equal(v, weights[k]) for k, v in _weights(other).items())


CASES = (
    ("bert", "demo_topic", ("training.evaluate_every=4", "training.head_learning_rate=1e-3")),
    ("modernbert", "demo_ner", ("training.batching=bucketed",)),
)


@pytest.mark.parametrize(("family", "task", "more"), CASES)
def test_killed_and_taken_up_is_never_killed(
    setup: Any, tmp_path: Path, family: str, task: str, more: tuple[str, ...]
) -> None:
    arguments = (family, task, "training.epochs=2", *more)
    loaded, prepared = setup(*arguments)
    whole = finetune(loaded, prepared, 1, "fp32", _silent)
    weights = _weights(whole)
    total = whole.record.steps
    kills = (2, total // 2 + 1, total)
    for step in kills:
        with pytest.raises(KilledError):
            finetune(*setup(*arguments), 1, "fp32", _killed_at(step), _keep(tmp_path))
        assert (tmp_path / "run.state").is_file()
    heard: list[tuple[int, str]] = []
    last = finetune(
        *setup(*arguments), 1, "fp32", lambda done, total, what: heard.append((done, what)), _keep(tmp_path)
    )
    assert heard[0] == (total - 1, "resumed")
    assert [done for done, what in heard if what.startswith("loss")] == [total]
    _same(whole, weights, last, resumed=len(kills))
    assert last.earlier_seconds > 0
    assert last.train_seconds > 0


def test_the_best_weights_survive(setup: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # A rate that ruins what the first epochs have learnt: the best epoch lies before the kill.
    arguments = ("bert", "demo_topic", "training.epochs=6", "training.patience=3", "training.learning_rate=0.02")
    loaded, prepared = setup(*arguments, limit=None)
    whole = finetune(loaded, prepared, 3, "fp32", _silent)
    weights, best = _weights(whole), whole.record.best_step
    assert best < whole.record.steps, "the case needs a best step before the last"
    with pytest.raises(KilledError):
        finetune(*setup(*arguments, limit=None), 3, "fp32", _killed_at(best + 2), _keep(tmp_path))
    last = finetune(*setup(*arguments, limit=None), 3, "fp32", _silent, _keep(tmp_path))
    _same(whole, weights, last, resumed=1)


def test_the_return_to_fp32_is_remembered(setup: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    backward = Run._backward

    def broken(self: Run, batch: list[int]) -> torch.Tensor:
        loss = backward(self, batch)
        return loss * float("nan") if self.precision == "bf16" and self.state.step == 2 else loss

    monkeypatch.setattr(Run, "_backward", broken)
    arguments = ("bert", "demo_topic", "training.epochs=2")
    whole = finetune(*setup(*arguments), 1, "bf16", _silent)
    assert whole.record.precision == "fp32"
    weights = _weights(whole)
    with pytest.raises(KilledError):
        finetune(*setup(*arguments), 1, "bf16", _killed_at(4), _keep(tmp_path))
    monkeypatch.setattr(Run, "_backward", backward)
    last = finetune(*setup(*arguments), 1, "bf16", _silent, _keep(tmp_path))
    assert last.record.backoffs == whole.record.backoffs
    _same(whole, weights, last, resumed=1)


def _stopped(setup: Any, folder: Path) -> Path:
    """A state of step 3."""
    with pytest.raises(KilledError):
        finetune(*setup("bert", "demo_topic", "training.epochs=2"), 1, "fp32", _killed_at(4), _keep(folder))
    assert _keep(folder).load() is not None
    return folder / "run.state"


def test_a_damaged_state_is_not_taken_up(setup: Any, tmp_path: Path) -> None:
    path = _stopped(setup, tmp_path)
    content = path.read_bytes()
    where = len(content) // 2
    for damaged in (
        content[:where],
        b"",
        content[:where] + bytes(x ^ 255 for x in content[where : where + 64]) + content[where + 64 :],
    ):
        path.write_bytes(damaged)
        keep = _keep(tmp_path)
        assert keep.load() is None
        assert keep.refusal is not None
        assert keep.refusal.startswith("the state on disk cannot be read: ")
    heard: list[str] = []
    arguments = setup("bert", "demo_topic", "training.epochs=2")
    outcome = finetune(*arguments, 1, "fp32", lambda done, total, what: heard.append(what), _keep(tmp_path))
    assert outcome.record.resumed == 0
    assert heard[0].startswith("starts again: the state on disk cannot be read")


def test_a_state_of_another_machine_or_an_earlier_wish_is_not_taken_up(
    setup: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = _stopped(setup, tmp_path)
    for year in (1990, 2090):  # what the clock shows decides nothing
        os.utime(path, (year * 3e7, year * 3e7))
        assert Savepoint(path, CPU, command=7.0, anew=True).load() is None
        assert Savepoint(path, CPU, command=0.0, anew=True).load() is not None, "its own"
        assert Savepoint(path, CPU, command=7.0).load() is not None
        assert Savepoint(path, CPU, command=7.0, anew=True).part("trial").anew
    for module, name, value in (
        (savepoint, "_cores", lambda: 0),
        (savepoint.torch, "__version__", "0.0"),
        (savepoint.metadata, "version", lambda name: "0.0"),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(module, name, value)
            keep = _keep(tmp_path)
            assert keep.load() is None, name
            assert keep.refusal is not None
            assert keep.refusal.startswith("the state on disk was made with ")
    assert _keep(tmp_path).load() is not None


def test_the_number_of_threads_is_that_of_the_first_process(setup: Any, tmp_path: Path) -> None:
    whole = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        _stopped(setup, tmp_path)
        torch.set_num_threads(2)
        _keep(tmp_path).load()
        assert torch.get_num_threads() == 1
    finally:
        torch.set_num_threads(whole)


def test_a_disk_that_takes_no_state_stops_nothing(setup: Any, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    heard: list[str] = []
    keep = Savepoint(tmp_path / "file" / "run.state", CPU, every=0.0)
    arguments = ("bert", "demo_topic", "training.epochs=2")
    outcome = finetune(*setup(*arguments), 1, "fp32", lambda done, total, what: heard.append(what), keep)
    assert outcome.record == finetune(*setup(*arguments), 1, "fp32", _silent).record
    steps = [what for what in heard if what.startswith("loss")]
    assert "cannot be resumed later" not in steps[0]
    assert all("cannot be resumed later: File exists" in what for what in steps[1:])
    keep.remove()


def test_a_write_that_fails_leaves_the_state_before_it(
    setup: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = _stopped(setup, tmp_path)
    before = path.read_bytes()

    def full(held: Any, stream: Any) -> None:
        stream.write(b"half of it")
        raise RuntimeError("[enforce fail at inline_container.cc] . PytorchStreamWriter failed writing file data/7")

    monkeypatch.setattr(savepoint.torch, "save", full)
    keep = _keep(tmp_path)
    keep.save(dict)
    assert keep.problem is not None
    assert "failed writing" in keep.problem
    assert not keep.due()
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["run.state"]


def test_what_a_killed_write_left_is_cleared(setup: Any, tmp_path: Path) -> None:
    path = _stopped(setup, tmp_path)
    (tmp_path / ".run.state.0123456789ab.tmp").write_bytes(b"half")
    (tmp_path / ".other.state.0123456789ab.tmp").write_bytes(b"of a run that another process makes")
    keep = _keep(tmp_path)
    keep.save(dict)
    assert sorted(p.name for p in tmp_path.iterdir()) == [".other.state.0123456789ab.tmp", "run.state"]
    keep.part("trial-2").save(dict)
    assert path.with_name("run.state.trial-2").is_file()
    keep.remove()
    assert [p.name for p in tmp_path.iterdir()] == [".other.state.0123456789ab.tmp"]


def test_a_slow_disk_is_asked_less_often(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([0.0, 10.0, 12.0, 13.0, 111.9, 112.1])
    monkeypatch.setattr(savepoint, "_SHARE", 50.0)
    monkeypatch.setattr(savepoint.time, "perf_counter", lambda: next(clock))
    keep = Savepoint(tmp_path / "run.state", CPU, every=5.0)  # at 0
    keep.save(dict)  # from 10 to 12
    assert keep.seconds == 2.0
    assert [keep.due() for _ in range(3)] == [False, False, True]  # at 13, 111.9 and 112.1


def test_the_tuned_track_goes_on_within_a_trial_and_between_trials(setup: Any, tmp_path: Path) -> None:
    arguments = ("bert", "demo_topic", "training.epochs=2", "training.grid=[0.001, 1.0, 20.0]")
    whole = tuned(*setup(*arguments), 1, "fp32", _silent)
    weights = _weights(whole)
    with pytest.raises(KilledError):
        tuned(*setup(*arguments), 1, "fp32", _killed_at(4, "trial 2/3: loss"), _keep(tmp_path))
    heard: list[str] = []
    again = tuned(*setup(*arguments), 1, "fp32", lambda done, total, what: heard.append(what), _keep(tmp_path))
    assert heard[:2] == ["resumed after trial 1/3", "trial 2/3: resumed"]
    assert again.predictions == whole.predictions
    # Once by the trials, once by the trial under way.
    assert again.record == whole.record.model_copy(update={"resumed": 2})
    assert again.train_tokens == whole.train_tokens
    assert 0 < again.earlier_seconds < again.train_seconds + again.evaluation_seconds
    assert all(torch.equal(v, weights[k]) for k, v in _weights(again).items())


def test_states_of_a_frozen_encoder_are_not_computed_twice(
    setup: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(features, "micro_batch_tokens", lambda device: 256)
    arguments = ("bert", "demo_topic", "training.encoder=frozen", "probe={epochs: 2, pooling: attention, segments: 4}")
    whole = finetune(*setup(*arguments), 1, "fp32", _silent)
    encoded: list[int] = []

    def follow(done: int, total: int, what: str) -> None:
        if what == "tokens encoded":
            encoded.append(done)

    finetune(*setup(*arguments), 1, "fp32", follow)
    assert len(encoded) > 6
    kills = (encoded[1], encoded[4], encoded[-1])
    for tokens in kills:
        with pytest.raises(KilledError):
            finetune(*setup(*arguments), 1, "fp32", _killed_at(tokens, "encoded"), _keep(tmp_path))
    encoded.clear()
    last = finetune(*setup(*arguments), 1, "fp32", follow, _keep(tmp_path))
    assert encoded == [], "the state of the last micro-batch was written before the kill"
    assert last.predictions == whole.predictions
    assert last.record == whole.record.model_copy(update={"resumed": len(kills)})
    assert last.earlier_seconds > 0


def test_reading_the_states_ends_when_asked_and_each_seed_after_it_is_its_own(
    setup: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(features, "micro_batch_tokens", lambda device: 256)
    monkeypatch.setattr(savepoint.Savepoint, "due", lambda self: False)
    loaded, prepared = setup("bert", "demo_topic", "training.encoder=frozen", "probe.epochs=2")
    monkeypatch.setattr(STOP, "set", True)
    with pytest.raises(RunStoppedError):
        finetune(loaded, prepared, 1, "fp32", _silent, _keep(tmp_path))
    monkeypatch.setattr(STOP, "set", False)
    saved = _keep(tmp_path).load()
    assert saved is not None
    assert saved["ended"] == 1
    records = [finetune(loaded, prepared, seed, "fp32", _silent, _keep(tmp_path)).record for seed in (1, 2)]
    assert [record.resumed for record in records] == [1, 0]
