"""`--executor ray`: the runs of a plan on a cluster. Ray is an optional extra that finds places and starts workers."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from biobench.core.files import write_atomic
from biobench.core.text import first_line
from biobench.errors import ClusterError, UsageError
from biobench.runs.cluster.dispatch import Dispatch, nodes
from biobench.runs.cluster.shape import shape_of
from biobench.runs.estimate import Paced
from biobench.runs.execute import Reporter
from biobench.runs.plan import Item, RunPlan
from biobench.runs.result import RunResult


def run_on_ray(plan: RunPlan, wanted: str, items: list[Item], reporter: Reporter) -> dict[str, RunResult]:
    """Make these runs of the plan on the cluster at RAY_ADDRESS, or on this machine; what came of each, by key.

    wanted: how many workers, or auto: as many as the cluster has room for, one a GPU (or a share of one, by
    `worker_gpus`), or one per four CPUs where no GPU is asked for. Raises UsageError where ray is not installed or
    nothing has room, ClusterError where no cluster answers, its nodes are not alike or none is left, and
    RunStoppedError where a signal asks to stop.
    """
    if find_spec("ray") is None:
        raise UsageError("--executor ray: ray is not installed", hint="pip install 'biobench[ray]'")
    ray: Any = import_module("ray")
    with _connected(ray), _seen_file(plan) as token:
        gpus = plan.request.worker_gpus
        gpus = (1.0 if plan.device.type == "cuda" else 0.0) if gpus is None else gpus
        shape = shape_of(nodes(ray), wanted, gpus, threads=plan.request.threads)
        paced = Paced(reporter, plan, items, min(shape.workers, len(items)))
        return Dispatch(ray, plan, items, paced, token, shape).results()


@contextmanager
def _connected(ray: Any) -> Iterator[None]:
    """Join the cluster, unless the caller has. Raises ClusterError."""
    if ray.is_initialized():
        yield
        return
    address = os.environ.get("RAY_ADDRESS")
    client = address is not None and address.startswith("ray://")
    try:
        ray.init(**({} if client else {"log_to_driver": False, "include_dashboard": False, "logging_level": "ERROR"}))
    except (ConnectionError, RuntimeError, ValueError) as error:
        place = "RAY_ADDRESS is not set" if address is None else f"RAY_ADDRESS={address}"
        raise ClusterError(
            f"--executor ray: no cluster can be joined ({place}): {first_line(error)}",
            hint="start one with `ray start --head`; the versions of Ray and Python must be the cluster's",
        ) from error
    try:
        yield
    finally:
        ray.shutdown()


@contextmanager
def _seen_file(plan: RunPlan) -> Iterator[str]:
    """A file in the results folder by which a node knows whether it sees the same folder; its name."""
    token = f".seen-{secrets.token_hex(8)}"
    path = Path(plan.request.results_dir) / "locks" / token
    write_atomic(path, token.encode())
    try:
        yield token
    finally:
        path.unlink(missing_ok=True)
