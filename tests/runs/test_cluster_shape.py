"""What each worker on a cluster reserves: every worker has a place on some node, and none is lost."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from biobench.errors import UsageError
from biobench.runs.cluster.shape import Node, Shape, room, shape_of

NODES = st.lists(
    st.builds(lambda cpus, gpus: {"CPU": float(cpus), "GPU": float(gpus)}, st.integers(1, 16), st.integers(0, 4)),
    min_size=1,
    max_size=5,
)


def node(cpus: int, gpus: int = 0) -> Node:
    return {"CPU": float(cpus), **({"GPU": float(gpus)} if gpus else {})}


@pytest.mark.parametrize(
    ("nodes", "wanted", "gpus", "shape"),
    [
        ([node(8), node(8)], "auto", 0.0, Shape(4, 4, 0.0, 2)),
        ([node(2), node(2)], "auto", 0.0, Shape(2, 2, 0.0, 1)),
        ([node(2), node(2)], "1", 0.0, Shape(1, 2, 0.0, 1)),  # four CPUs together are on no node
        ([node(2), node(2)], "3", 0.0, Shape(3, 1, 0.0, 2)),
        ([{}, node(4)], "auto", 0.0, Shape(1, 4, 0.0, 1)),  # a head node without CPUs
        ([node(8, 2)], "auto", 1.0, Shape(2, 4, 1.0, 2)),
        ([node(8, 1), node(8, 1)], "auto", 0.5, Shape(4, 4, 0.5, 2)),
        ([node(8, 1), node(8)], "auto", 0.5, Shape(2, 4, 0.5, 2)),
        ([node(8, 2)], "auto", 0.4, Shape(4, 2, 0.4, 4)),  # two fifths twice on each, and no worker on two of them
        ([node(2, 4)], "auto", 1.0, Shape(2, 1, 1.0, 2)),  # each needs a CPU
    ],
)
def test_by_hand(nodes: list[Node], wanted: str, gpus: float, shape: Shape) -> None:
    assert shape_of(nodes, wanted, gpus) == shape


def test_threads_of_all_workers_together() -> None:
    assert shape_of([node(8), node(8)], "4", 0.0, threads=8).cpus == 2
    assert shape_of([node(8)], "4", 0.0, threads=2).cpus == 1


def test_more_workers_than_have_room(caplog: pytest.LogCaptureFixture) -> None:
    assert shape_of([node(2)], "5", 0.0) == Shape(2, 1, 0.0, 2)
    assert "the cluster has room for 2 of 5 workers" in caplog.text


def test_nothing_has_room() -> None:
    with pytest.raises(UsageError, match="the cluster has no GPU for a worker"):
        shape_of([node(8)], "auto", 1.0)
    with pytest.raises(UsageError, match="the cluster has no CPU for a worker"):
        shape_of([{"GPU": 1.0}], "1", 0.0)


@given(
    nodes=NODES,
    wanted=st.one_of(st.just("auto"), st.integers(1, 12).map(str)),
    gpus=st.sampled_from([0.0, 0.1, 0.25, 0.3, 0.5, 1.0]),
)
def test_all_workers_have_room_at_once(nodes: list[Node], wanted: str, gpus: float) -> None:
    if gpus and not any(n["GPU"] for n in nodes):
        return
    shape = shape_of(nodes, wanted, gpus)
    places = sum(room(n, shape.cpus, gpus) for n in nodes)
    assert 1 <= shape.workers <= places
    assert sum(room(n, shape.cpus + 1, gpus) for n in nodes) < shape.workers, "a CPU each could be added"
    assert wanted == "auto" or shape.workers <= int(wanted)
