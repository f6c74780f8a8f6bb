"""The next task is tokenised while one trains: the same runs, and nothing but time is lost when that goes wrong."""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from biobench.errors import BioBenchError
from biobench.finetune import ahead, token_cache
from biobench.finetune.ahead import Ahead, NextTask, tokenise
from biobench.runs.api import run_plan
from biobench.runs.execute import Silent
from biobench.runs.plan import make_plan
from biobench.runs.result import RunName, RunResult
from biobench.store import Store
from tests.helpers.ahead_make import AtOnce, assert_same, records, request, use
from tests.helpers.golden_make import write_checkpoint, write_tasks
from tests.helpers.private_make import private_tasks
from tests.helpers.tiny import make_tiny_encoder


@pytest.fixture(autouse=True)
def _small_tasks_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(token_cache, "WORTH_CHARACTERS", 0)


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_tiny_encoder(tmp_path_factory.mktemp("model") / "tiny")


def test_every_kind_of_task_gives_the_same_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tasks = write_tasks(tmp_path / "data")
    del tasks["golden_names"]  # of the frozen track alone
    basis = replace(
        request(write_checkpoint("bert", tmp_path / "bert"), tmp_path / "without"),
        tasks=("demo_ner", "demo_topic", *map(str, tasks.values())),
        data_dir=str(tmp_path / "data"),
        overrides=("training.epochs=1", "protocol.max_length=224"),
        seeds="1",
    )
    use(monkeypatch, AtOnce, spare=0)
    without = records(basis)
    asked = use(monkeypatch, AtOnce)
    with_it = records(replace(basis, results_dir=str(tmp_path / "with")))
    assert_same(without, with_it)
    assert not any(r.cost.prepared_ahead for r in without.values())
    ready = {task for (task, _), r in with_it.items() if r.cost.prepared_ahead}
    assert ready == {task for task, _ in without} - {"demo_ner", "golden_needle"}, "all but the first; needles are made"
    assert len(asked) == len(ready), "each is asked for once"


class Mapped(Silent):
    """Counts the files of the cache that this process has mapped when a run ends."""

    def __init__(self) -> None:
        self.counts: list[int] = []

    def finish(self, result: RunResult) -> None:
        gc.collect()
        lines = Path("/proc/self/maps").read_text(encoding="utf-8").splitlines()
        self.counts.append(len({line.split()[-1] for line in lines if "/cache/tokens/" in line}))


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="needs /proc, to see what is mapped")
def test_the_files_of_one_task_are_mapped_and_no_others(
    tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(monkeypatch, AtOnce)
    mapped = Mapped()
    basis = replace(request(tiny, tmp_path), tasks=("demo_topic", "demo_ner", "demo_names", "demo_first"))
    run_plan(make_plan(basis), mapped)
    assert mapped.counts == [3] * 8


class Patient(Silent):
    """Ends the first task's last run when the background process has left three more splits."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.processes: list[int] = []

    def finish(self, result: RunResult) -> None:
        if (result.task, result.seed) == ("demo_topic", 2):
            self.processes += [p.pid or 0 for p in multiprocessing.active_children()]
            until = time.monotonic() + 120
            while len(list(self.folder.glob("cache/tokens/*.npy"))) < 6:
                assert time.monotonic() < until, "nothing was tokenised in the background"
                time.sleep(0.05)


def test_a_process_tokenises_the_next_task_and_ends_with_the_plan(
    tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(monkeypatch, Ahead, spare=0)
    without = records(request(tiny, tmp_path / "without"))
    use(monkeypatch, Ahead)
    before = {p.pid for p in multiprocessing.active_children()}
    patient = Patient(tmp_path / "with")
    results = run_plan(make_plan(request(tiny, patient.folder)), patient)
    assert [r.status for r in results] == ["done"] * 4
    with_it = {(r.task.id, r.seed): r for r in Store(patient.folder).records()}
    assert_same(without, with_it)
    assert {task for (task, _), r in with_it.items() if r.cost.prepared_ahead} == {"demo_ner"}
    assert len(set(patient.processes) - before) == 1
    assert {p.pid for p in multiprocessing.active_children()} <= before
    assert not list(patient.folder.glob("cache/tokens/*.lock"))


def fall(pipe: Connection) -> None:
    """A background process that dies of its first task."""
    pipe.recv()
    os.kill(os.getpid(), signal.SIGKILL)


class Falling(Ahead):
    def __init__(self) -> None:
        super().__init__(serve=fall)

    def begin(self, task: NextTask) -> bool:
        going = super().begin(task)
        if self._process is not None:
            self._process.join()
        return going


def test_a_background_process_that_is_killed_costs_nothing_but_its_work(
    tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    basis = replace(request(tiny, tmp_path / "without"), seeds="1", tasks=("demo_topic", "demo_ner", "demo_names"))
    use(monkeypatch, AtOnce, spare=0)
    without = records(basis)
    use(monkeypatch, Falling)
    with_it = records(replace(basis, results_dir=str(tmp_path / "with")))
    assert_same(without, with_it)
    assert not any(r.cost.prepared_ahead for r in with_it.values())
    assert caplog.text.count("does not run; each is tokenised when its turn comes") == 1


def test_a_process_that_cannot_start_costs_nothing(
    tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(self: object) -> None:
        raise BlockingIOError("Resource temporarily unavailable")

    use(monkeypatch, Ahead)
    monkeypatch.setattr(ahead.SpawnProcess, "start", refuse)
    assert len(records(request(tiny, tmp_path))) == 4
    assert "does not run" in caplog.text


def test_one_that_dies_with_a_lock_leaves_it_to_others(tiny: Path, tmp_path: Path) -> None:
    """Its lock is the operating system's, and what it had not finished is not there."""
    basis = replace(request(tiny, tmp_path), tasks=("demo_topic",))
    script = (
        "import os, signal, sys\nfrom biobench.finetune import token_cache\ntoken_cache.WORTH_CHARACTERS = 0\n"
        "token_cache.write_atomic = lambda *a: os.kill(os.getpid(), signal.SIGKILL)\n"
        "from biobench.runs.api import run\n"
        f"run({str(tiny)!r}, ['demo_topic'], seeds='1', results_dir={str(tmp_path)!r}, device='cpu', gate=False,"
        " limit=20, overrides=['training.epochs=1'])\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, timeout=120, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert [p.suffix for p in tmp_path.glob("cache/tokens/*")] == [".lock"]
    assert len(records(basis)) == 2
    assert {p.suffix for p in tmp_path.glob("cache/tokens/*")} == {".npy"}


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs /proc, to look at the process from outside")
def test_a_killed_command_takes_the_process_along_and_ends_as_undisturbed(tiny: Path, tmp_path: Path) -> None:
    without = records(request(tiny, tmp_path / "without"))
    folder = tmp_path / "with"
    script = (
        "import time\nfrom biobench.finetune import token_cache\ntoken_cache.WORTH_CHARACTERS = 0\n"
        "from biobench.runs import workshop\nworkshop.spare_cpus = lambda busy: 1\n"
        "from biobench.runs.api import make_runs\nfrom biobench.runs.execute import Silent\n"
        "from biobench.runs.options import RunRequest\n"
        "class Slow(Silent):\n    def finish(self, result): print(result.task, flush=True); time.sleep(300)\n"
        f"make_runs(RunRequest(model={str(tiny)!r}, tasks=['demo_topic', 'demo_ner'], seeds='1-2', device='cpu',\n"
        f"    results_dir={str(folder)!r}, overrides=['training.epochs=1'], limit=20, gate=False), Slow())\n"
    )
    command = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, env={**os.environ})
    try:
        assert command.stdout is not None
        assert command.stdout.readline().strip() == b"demo_topic"
        children = Path(f"/proc/{command.pid}/task/{command.pid}/children").read_text(encoding="ascii").split()
        helpers = [c for c in children if b"spawn_main" in Path(f"/proc/{c}/cmdline").read_bytes()]
        assert len(helpers) == 1
    finally:
        command.kill()
        command.wait()
    until = time.monotonic() + 60
    while Path(f"/proc/{helpers[0]}").exists() and " Z " not in Path(f"/proc/{helpers[0]}/stat").read_text():
        assert time.monotonic() < until, "the process outlived the command"
        time.sleep(0.05)
    plan = make_plan(request(tiny, folder))
    assert sorted(r.status for r in run_plan(plan, Silent())) == ["done"] * 3 + ["skipped"]
    assert_same(without, {(r.task.id, r.seed): r for r in Store(folder).records()})


class Order(Silent):
    """What begins and ends, in order."""

    def __init__(self) -> None:
        self.events: list[tuple[str, str, int | None, str | None]] = []

    def start(self, run: RunName, position: int, total: int) -> None:
        self.events.append(("start", run.task, run.seed, None))

    def finish(self, result: RunResult) -> None:
        self.events.append((result.status, result.task, result.seed, result.reason))


def test_an_error_in_the_next_task_is_reported_at_its_turn(
    tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stride = "demo_ner:protocol={max_length: 16, long_documents: stride, stride: 14}"
    events = []
    for folder, spare in (("without", 0), ("with", 1)):
        basis = request(tiny, tmp_path / folder)
        order = Order()
        tasks = use(monkeypatch, Tolerant, spare)
        run_plan(make_plan(replace(basis, overrides=(*basis.overrides, stride))), order)
        events.append(order.events)
        assert len(tasks) == spare
    assert events[0] == events[1]
    assert [(what, task) for what, task, _, _ in events[0]] == [
        *[("start", "demo_topic"), ("done", "demo_topic")] * 2,
        *[("start", "demo_ner"), ("failed", "demo_ner")] * 2,
    ]
    assert all("leaves nothing of a window" in str(e[3]) for e in events[0] if e[0] == "failed")


class Tolerant(AtOnce):
    """As the process: what goes wrong is not its business."""

    def begin(self, task: NextTask) -> bool:
        self.tasks.append(task)
        with pytest.raises(BioBenchError, match="leaves nothing of a window"):
            tokenise(replace(task, memory=None))
        return True


@pytest.mark.parametrize("change", ["other words", "broken", "gone"])
def test_data_that_change_on_the_way_change_no_run(
    change: str, tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    private_tasks(tmp_path, access="open")
    file = tmp_path / "data" / "own" / "all.tsv"

    class Altering(AtOnce):
        def begin(self, task: NextTask) -> bool:
            self.tasks.append(task)
            if change == "gone":
                file.unlink()
            else:
                text = file.read_text(encoding="utf-8")
                file.write_text(text.replace("fever", "chills") if change == "other words" else text[:1000] + "\t\t\n")
            try:
                tokenise(replace(task, memory=None))
            except Exception:
                assert change != "other words"
            return True

    basis = replace(
        request(tiny, tmp_path / "without"),
        tasks=("demo_topic", str(tmp_path / "own_notes.yaml")),
        data_dir=str(tmp_path / "data"),
        limit=None,
        overrides=("training.epochs=1", "demo_topic:training.train_documents=20"),
    )
    use(monkeypatch, AtOnce, spare=0)
    without = records(basis)
    tasks = use(monkeypatch, Altering)
    with_it = records(replace(basis, results_dir=str(tmp_path / "with")))
    assert len(tasks) == 1
    assert_same(without, with_it)
    assert not with_it["own_notes", 1].cost.prepared_ahead
