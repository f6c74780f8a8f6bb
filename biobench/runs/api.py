"""`biobench.run`: the Python face of the command."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from biobench.data.load import load_data
from biobench.finetune.savepoint import EVERY_SECONDS
from biobench.gate import ensure
from biobench.runs.cluster import run_on_ray
from biobench.runs.execute import Reporter, Silent, execute
from biobench.runs.parallel import run_workers, worker_count
from biobench.runs.plan import Executor, Item, Plan, Request, TaskEntry, Track, make_plan
from biobench.runs.result import RunResult
from biobench.schema.document import TaskData
from biobench.store import Store


def _names(given: str | Path | Iterable[str | Path]) -> tuple[str, ...]:
    return (str(given),) if isinstance(given, str | Path) else tuple(str(g) for g in given)


def run(
    model: str | Path | Iterable[str | Path],
    tasks: str | Path | Iterable[str | Path] = (),
    *,
    suite: str | None = None,
    seeds: str | int | Iterable[int] | None = None,
    data_dir: str | Path | None = None,
    results_dir: str | Path = "results",
    device: str = "auto",
    parallel: str | int = "auto",
    executor: Executor = "local",
    overrides: str | Iterable[str] = (),
    limit: int | None = None,
    track: Track = "fixed",
    train_fractions: float | Iterable[float] = (1.0,),
    force: bool = False,
    offline: bool = False,
    strict: bool = False,
    energy: bool = False,
    gate: bool = True,
    trust_remote_code: bool = False,
    save_every: float = EVERY_SECONDS,
    reporter: Reporter | None = None,
) -> list[RunResult]:
    """Fine-tune and score, as `biobench run` does; one result a run.

    model: hub id, ``id@revision`` or folder, or several. tasks: ids or YAML paths. seeds: ``42-50``, a seed,
    or several. overrides: ``KEY=VALUE``, one or several. save_every: seconds. gate: before a task's first run,
    store what policies without skill reach on it and whether it measures something. Raises BioBenchError when
    the input is wrong; a failed run is a result, not an exception.
    """
    if isinstance(seeds, int):
        seeds = str(seeds)
    elif seeds is not None and not isinstance(seeds, str):
        seeds = ",".join(str(s) for s in seeds)
    request = Request(
        models=_names(model),
        tasks=_names(tasks),
        suite=suite,
        seeds=seeds,
        data_dir=None if data_dir is None else str(data_dir),
        results_dir=str(results_dir),
        device=device,
        parallel=str(parallel),
        executor=executor,
        overrides=_names(overrides),
        limit=limit,
        track=track,
        train_fractions=(train_fractions,) if isinstance(train_fractions, int | float) else tuple(train_fractions),
        force=force,
        offline=offline,
        strict=strict,
        energy=energy,
        gate=gate,
        trust_remote_code=trust_remote_code,
        save_every=save_every,
    )
    return run_plan(make_plan(request), reporter or Silent())


def undone(plan: Plan) -> list[Item]:
    """The items that are not stored yet, or all with --force."""
    store = Store(plan.request.results_dir)
    return [i for i in plan.items if plan.request.force or store.get(i.task.id, i.key) is None]


def _workers(plan: Plan) -> str:
    """The wanted number as given, checked."""
    worker_count(plan.request.parallel, plan.device)
    return plan.request.parallel


def ask_gate(plan: Plan) -> None:
    """Store a verdict for every task with a run to make, where there is none on its data. Seconds a task."""
    for entry in {i.task.id: i.task for i in undone(plan)}.values():
        assert entry.data is not None
        ensure(entry.loaded, entry.data, plan.request.results_dir, full=_whole(entry, plan.request))


def _whole(entry: TaskEntry, request: Request) -> Callable[[], TaskData] | None:
    """Reads the task's data without the limit; None where there is no limit."""
    if request.limit is None:
        return None
    return lambda: load_data(entry.loaded, request.data_dir, offline=request.offline)


def run_plan(plan: Plan, reporter: Reporter) -> list[RunResult]:
    """Ask the gate, then make the runs of a plan, with worker processes where the request asks for several."""
    _workers(plan)  # a wrong number is refused before anything is written
    if plan.request.gate:
        ask_gate(plan)
    if plan.request.executor == "ray" and undone(plan):
        plan.workers = 1 + run_on_ray(plan.request, _workers(plan), plan.device)
        return list(execute(plan, reporter))
    left = len(undone(plan))
    workers = min(worker_count(plan.request.parallel, plan.device), left)
    known: dict[str, RunResult] = {}
    if workers > 1:
        known = run_workers(plan, workers, len(plan.items) - left, reporter)
        plan.workers = workers
    return list(execute(plan, reporter, known))
