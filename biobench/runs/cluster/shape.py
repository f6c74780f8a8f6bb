"""What each worker on a cluster reserves, from what the nodes have. Free of Ray and of torch."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from biobench.errors import UsageError

_CPUS_A_WORKER = 4
"""Where nothing is asked for and there is no GPU."""
Node = dict[str, float]
"""What a node has: CPU and GPU, in numbers, and whatever else Ray counts."""


@dataclass(frozen=True, slots=True)
class Shape:
    """What each worker reserves. gpus: a share of one, or 0. most: the most workers that fit on one node."""

    workers: int
    cpus: int
    gpus: float
    most: int


def room(node: Node, cpus: int, gpus: float) -> int:
    """Workers that fit on an empty node. A share of a GPU never lies on two."""
    fit = int(node.get("CPU", 0)) // cpus
    return fit if not gpus else min(fit, int(node.get("GPU", 0)) * int(1 / gpus + 1e-6))


def shape_of(nodes: list[Node], wanted: str, gpus: float, *, threads: int | None = None) -> Shape:
    """How many workers, and what each reserves. threads: CPUs of all workers together. Raises UsageError.

    As many CPUs for each as leave room for all of them; fewer workers than wanted where even one CPU each is too much.
    """
    cpus = 1 if gpus else _CPUS_A_WORKER
    if wanted == "auto" and not gpus:
        cpus = max(1, min(cpus, max((int(n.get("CPU", 0)) for n in nodes), default=1)))
    capacity = sum(room(node, cpus if wanted == "auto" else 1, gpus) for node in nodes)
    if not capacity:
        raise UsageError(
            f"the cluster has no {'GPU' if gpus else 'CPU'} for a worker",
            hint="--device cpu, or add GPU nodes" if gpus else "add nodes with CPUs",
        )
    workers = capacity if wanted == "auto" else min(int(wanted), capacity)
    if wanted != "auto" and workers < int(wanted):
        logging.getLogger("biobench").warning("the cluster has room for %d of %s workers", workers, wanted)
    while sum(room(node, cpus + 1, gpus) for node in nodes) >= workers:
        cpus += 1
    while cpus > 1 and sum(room(node, cpus, gpus) for node in nodes) < workers:
        cpus -= 1
    if threads is not None:
        cpus = min(cpus, max(1, threads // workers))
    return Shape(workers, cpus, gpus, min(workers, max(room(node, cpus, gpus) for node in nodes)))
