"""The same workers on a Ray cluster.

A worker is the local one: it walks the plan, and the claims in the results folder (which all nodes must
share) keep any run from being made twice. Ray only finds the places. It is an optional extra.
"""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import torch

from biobench.errors import UsageError
from biobench.runs.options import RunRequest
from biobench.runs.parallel import work


def run_on_ray(request: RunRequest, wanted: str, device: torch.device) -> int:
    """Make the runs of `request` on the cluster at RAY_ADDRESS, or on this machine; the number of workers.

    wanted: how many, or auto: one per GPU of the cluster (per four CPUs where there is none). Returns when
    all have ended. Raises UsageError where ray is not installed.
    """
    if find_spec("ray") is None:
        raise UsageError("--executor ray: ray is not installed", hint="pip install 'biobench[ray]'")
    ray: Any = import_module("ray")

    began_here = not ray.is_initialized()
    if began_here:
        ray.init(log_to_driver=False, include_dashboard=False)
    try:
        resources: dict[str, float] = ray.cluster_resources()
        gpus, cpus = int(resources.get("GPU", 0)), int(resources.get("CPU", 1))
        workers = int(wanted) if wanted != "auto" else gpus if device.type == "cuda" else max(1, cpus // 4)
        if workers < 1:
            raise UsageError("the cluster has no GPU", hint="--device cpu, or add GPU nodes")
        threads = max(1, cpus // workers)
        worker_request = replace(request, parallel="1", device=device.type)
        remote = ray.remote(work)
        options = {"num_gpus": 1, "num_cpus": 1} if device.type == "cuda" else {"num_cpus": min(threads, cpus)}
        ray.get([remote.options(max_retries=0, **options).remote(worker_request, threads) for _ in range(workers)])
        return workers
    finally:
        if began_here:
            ray.shutdown()
