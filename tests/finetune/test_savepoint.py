"""A run that is killed between any two steps and resumed is the run that nobody killed."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from biobench.core.machine import Precision
from biobench.core.stop import STOP, RunStoppedError
from biobench.finetune import features, savepoint
from biobench.finetune.engine import finetune
from biobench.finetune.loop import Outcome, Run
from biobench.finetune.network import copied_weights
from biobench.finetune.savepoint import Savepoint
from biobench.finetune.tuning import tuned
from tests.finetune.conftest import silent

CPU = torch.device("cpu")


class KilledError(BaseException):
    """Nothing below may catch it."""


@pytest.fixture(autouse=True)
def _each_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """A state after each step, however long writing it takes."""
    monkeypatch.setattr(savepoint, "_SHARE", 0.0)


def _killed_at(step: int, word: str = "loss") -> Any:
    """A listener that ends the run when `step` is reported the first time (its state is not written
    yet).
    """

    def progress(done: int, total: int, what: str) -> None:
        if done == step and word in what:
            raise KilledError

    return progress


def _keep(folder: Path) -> Savepoint:
    return Savepoint(folder / "run.state", CPU, every=0.0)


@pytest.fixture
def train(setup: Any, tmp_path: Path) -> Callable[..., Outcome]:
    """`train(*arguments, progress=, saved=, ...)`: one run, with its state in the folder or without
    one.
    """

    def make(
        *arguments: str,
        seed: int = 1,
        precision: Precision = "fp32",
        progress: Any = silent,
        limit: int | None = 48,
        saved: bool = True,
        run: Any = finetune,
    ) -> Outcome:
        states = [_keep(tmp_path)] if saved else []
        outcome: Outcome = run(*setup(*arguments, limit=limit), seed, precision, progress, *states)
        return outcome

    return make


def _same(one: Outcome, weights: dict[str, torch.Tensor], other: Outcome, *, resumed: int) -> None:
    assert other.predictions == one.predictions
    assert other.record == one.record.model_copy(update={"resumed": resumed})
    assert other.train_tokens == one.train_tokens
    torch.testing.assert_close(copied_weights(other.network), weights, atol=0, rtol=0)


TWO = ("bert", "demo_topic", "training.epochs=2")
RUINED = (
    "bert",
    "demo_topic",
    "training.epochs=6",
    "training.patience=3",
    "training.learning_rate=0.02",
)
"""A rate that ruins what the first epochs have learnt: the best epoch lies before the last kill."""


@pytest.mark.parametrize(
    ("arguments", "limit"),
    [
        ((*TWO, "training.evaluate_every=4", "training.head_learning_rate=1e-3"), 48),
        (("modernbert", "demo_ner", "training.epochs=2", "training.batching=bucketed"), 48),
        (RUINED, None),
    ],
)
def test_killed_and_resumed_is_never_killed(
    train: Callable[..., Outcome], tmp_path: Path, arguments: tuple[str, ...], limit: int | None
) -> None:
    options: dict[str, Any] = {"seed": 3, "limit": limit}
    whole = train(*arguments, saved=False, **options)
    weights, total = copied_weights(whole.network), whole.record.steps
    assert limit or whole.record.best_step < total - 1, "the case needs a best step before the last"
    kills = (2, total // 2 + 1, total)
    for step in kills:
        with pytest.raises(KilledError):
            train(*arguments, progress=_killed_at(step), **options)
        assert (tmp_path / "run.state").is_file()
    heard: list[tuple[int, str]] = []
    last = train(
        *arguments, progress=lambda done, total, what: heard.append((done, what)), **options
    )
    assert heard[0] == (total - 1, "resumed")
    assert [done for done, what in heard if what.startswith("loss")] == [total]
    _same(whole, weights, last, resumed=len(kills))
    assert last.earlier_seconds > 0
    assert last.train_seconds > 0


def test_the_return_to_fp32_is_remembered(
    train: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch
) -> None:
    backward = Run._backward

    def broken(self: Run, batch: list[int]) -> torch.Tensor:
        loss = backward(self, batch)
        return loss * float("nan") if self.precision == "bf16" and self.state.step == 2 else loss

    monkeypatch.setattr(Run, "_backward", broken)
    whole = train(*TWO, precision="bf16", saved=False)
    assert whole.record.precision == "fp32"
    weights = copied_weights(whole.network)
    with pytest.raises(KilledError):
        train(*TWO, precision="bf16", progress=_killed_at(4))
    monkeypatch.setattr(Run, "_backward", backward)
    _same(whole, weights, train(*TWO, precision="bf16"), resumed=1)


@pytest.fixture
def stopped(train: Callable[..., Outcome], tmp_path: Path) -> Path:
    """A state of step 3."""
    with pytest.raises(KilledError):
        train(*TWO, progress=_killed_at(4))
    assert _keep(tmp_path).load() is not None
    return tmp_path / "run.state"


def test_a_damaged_state_is_not_resumed(
    train: Callable[..., Outcome], stopped: Path, tmp_path: Path
) -> None:
    content = stopped.read_bytes()
    where = len(content) // 2
    flipped = bytes(x ^ 255 for x in content[where : where + 64])
    for damaged in (content[:where], b"", content[:where] + flipped + content[where + 64 :]):
        stopped.write_bytes(damaged)
        keep = _keep(tmp_path)
        assert keep.load() is None
        assert keep.refusal.startswith("the state on disk cannot be read: ")
    heard: list[str] = []
    assert train(*TWO, progress=lambda done, total, what: heard.append(what)).record.resumed == 0
    assert heard[0].startswith("starts again: the state on disk cannot be read")


def test_a_state_of_another_machine_or_an_earlier_wish_is_not_resumed(
    stopped: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for year in (1990, 2090):  # what the clock shows decides nothing
        os.utime(stopped, (year * 3e7, year * 3e7))
        assert Savepoint(stopped, CPU, command=7.0, anew=True).load() is None
        assert Savepoint(stopped, CPU, command=0.0, anew=True).load() is not None, "its own"
        assert Savepoint(stopped, CPU, command=7.0).load() is not None
        assert Savepoint(stopped, CPU, command=7.0, anew=True).part("trial").anew
    for module, name, value in (
        (savepoint, "_cores", lambda: 0),
        (savepoint.torch, "__version__", "0.0"),
        (savepoint.metadata, "version", lambda name: "0.0"),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(module, name, value)
            keep = _keep(tmp_path)
            assert keep.load() is None, name
            assert keep.refusal.startswith("the state on disk was made with ")
    assert _keep(tmp_path).load() is not None


def test_the_number_of_threads_is_that_of_the_first_process(
    request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    torch.set_num_threads(1)
    request.getfixturevalue("stopped")
    torch.set_num_threads(2)
    _keep(tmp_path).load()
    assert torch.get_num_threads() == 1


def test_a_disk_that_takes_no_state_stops_nothing(
    setup: Any, train: Callable[..., Outcome], tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("no folder")
    heard: list[str] = []
    keep = Savepoint(tmp_path / "file" / "run.state", CPU, every=0.0)
    outcome = finetune(*setup(*TWO), 1, "fp32", lambda done, total, what: heard.append(what), keep)
    assert outcome.record == train(*TWO, saved=False).record
    steps = [what for what in heard if what.startswith("loss")]
    assert "cannot be resumed later" not in steps[0]
    assert all("cannot be resumed later: File exists" in what for what in steps[1:])
    keep.remove()


def test_a_write_that_fails_leaves_the_state_before_it(
    stopped: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = stopped.read_bytes()

    def full(held: Any, stream: Any) -> None:
        stream.write(b"half of it")
        raise RuntimeError(
            "[enforce fail at inline_container.cc] . PytorchStreamWriter failed writing file data/7"
        )

    monkeypatch.setattr(savepoint.torch, "save", full)
    keep = _keep(tmp_path)
    keep.save(dict)
    assert "failed writing" in keep.problem
    assert not keep.due()
    assert stopped.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["run.state"]


def test_what_a_killed_write_left_is_cleared(stopped: Path, tmp_path: Path) -> None:
    (tmp_path / ".run.state.0123456789ab.tmp").write_bytes(b"half")
    other = tmp_path / ".other.state.0123456789ab.tmp"  # of a run that another process makes
    other.touch()
    keep = _keep(tmp_path)
    keep.save(dict)
    assert set(tmp_path.iterdir()) == {other, stopped}
    keep.part("trial-2").save(dict)
    assert stopped.with_name("run.state.trial-2").is_file()
    keep.remove()
    assert set(tmp_path.iterdir()) == {other}


def test_a_slow_disk_is_asked_less_often(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([0.0, 10.0, 12.0, 13.0, 111.9, 112.1])
    monkeypatch.setattr(savepoint, "_SHARE", 50.0)
    monkeypatch.setattr(savepoint.time, "perf_counter", lambda: next(clock))
    keep = Savepoint(tmp_path / "run.state", CPU, every=5.0)  # at 0
    keep.save(dict)  # from 10 to 12
    assert keep.seconds == 2.0
    assert [keep.due() for _ in range(3)] == [False, False, True]  # at 13, 111.9 and 112.1


def test_the_tuned_track_resumes_within_a_trial_and_between_trials(
    train: Callable[..., Outcome],
) -> None:
    arguments = (*TWO, "training.grid=[0.001, 1.0, 20.0]")
    whole = train(*arguments, run=tuned, saved=False)
    weights = copied_weights(whole.network)
    with pytest.raises(KilledError):
        train(*arguments, run=tuned, progress=_killed_at(4, "trial 2/3: loss"))
    heard: list[str] = []
    again = train(*arguments, run=tuned, progress=lambda done, total, what: heard.append(what))
    assert heard[:2] == ["resumed after trial 1/3", "trial 2/3: resumed"]
    _same(whole, weights, again, resumed=2)  # once by the trials, once by the trial under way
    assert 0 < again.earlier_seconds < again.train_seconds + again.evaluation_seconds


def test_states_of_a_frozen_encoder_are_not_computed_twice(
    train: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(features, "micro_batch_tokens", lambda device: 256)
    arguments = (
        "bert",
        "demo_topic",
        "training.encoder=frozen",
        "probe={epochs: 2, pooling: attention, segments: 4}",
    )
    encoded: list[int] = []

    def follow(done: int, total: int, what: str) -> None:
        if what == "tokens encoded":
            encoded.append(done)

    whole = train(*arguments, progress=follow, saved=False)
    assert len(encoded) > 6
    kills = (encoded[1], encoded[4], encoded[-1])
    for tokens in kills:
        with pytest.raises(KilledError):
            train(*arguments, progress=_killed_at(tokens, "encoded"))
    encoded.clear()
    last = train(*arguments, progress=follow)
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
        finetune(loaded, prepared, 1, "fp32", silent, _keep(tmp_path))
    monkeypatch.setattr(STOP, "set", False)
    saved = _keep(tmp_path).load()
    assert saved["ended"] == 1
    records = [
        finetune(loaded, prepared, seed, "fp32", silent, _keep(tmp_path)).record for seed in (1, 2)
    ]
    assert [record.resumed for record in records] == [1, 0]
