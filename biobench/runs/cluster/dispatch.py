"""Handing out the runs, longest first, one at a time to each worker, and hearing what every worker does.

A worker that dies, with its node or alone, loses the run that it was making; another one makes it. Results lie in the
results folder where a node sees it, and travel through Ray where it does not; the claim to the run is this process's
then.
"""

from __future__ import annotations

import logging
import os
import tempfile
import time
from collections import Counter, deque
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from biobench.core.files import write_atomic
from biobench.core.stop import STOP, RunStoppedError
from biobench.core.text import first_line
from biobench.errors import ClusterError
from biobench.runs.cluster.shape import Node, Shape, room
from biobench.runs.cluster.worker import Event, NodeWorker, Orders, Place, fingerprints
from biobench.runs.contamination import contamination
from biobench.runs.execute import Reporter
from biobench.runs.freshness import Freshness
from biobench.runs.parallel import longest_items
from biobench.runs.plan import Item, RunPlan
from biobench.runs.result import RunName, RunResult, of_record, without_record
from biobench.schema.record import RunRecord
from biobench.store import Store
from biobench.store.claims import Claim

TRIES = 3
"""Workers that may die of one run."""
PATIENCE = 120.0
"""Seconds without any node that has room for a worker, after which the command ends."""
LISTEN_SECONDS = 0.5


def nodes(ray: Any) -> list[Node]:
    """What each living node of the cluster has."""
    return [node["Resources"] for node in ray.nodes() if node["Alive"]]


@dataclass(slots=True)
class _Hand:
    """A worker. listening: Ray's reference of what it says next. item: what it makes; claim: what ends with that."""

    handle: Any
    listening: Any
    place: Place | None = None
    item: Item | None = None
    claim: Claim | None = None
    claimed: ExitStack = field(default_factory=ExitStack)


class Dispatch:
    """The runs that are to be made, the workers, and what has come of them."""

    def __init__(
        self, ray: Any, plan: RunPlan, items: list[Item], reporter: Reporter, token: str, shape: Shape
    ) -> None:
        self.ray, self.plan, self.reporter, self.shape = ray, plan, reporter, shape
        self.actor = ray.remote(NodeWorker)
        self.store, self.fresh = Store(plan.request.results_dir), Freshness(plan)
        wanted = {item.key for item in items}
        self.queue = deque(item for item in longest_items(plan) if item.key in wanted)
        self.alone: list[Item] = []
        """Runs that did not fit beside others."""
        self.outcomes: dict[str, RunResult] = {}
        self.begun = len(plan.items) - len(items)
        self.positions: dict[str, int] = {}
        self.deaths: Counter[str] = Counter()
        self.stillborn = 0
        """Workers that died before they were ready, since the last that was."""
        self.hands: list[_Hand] = []
        self.total = len(wanted)
        self.stopping = False
        self.room_seen = time.monotonic()
        request = replace(
            plan.request,
            parallel="1",
            executor="local",
            worker_gpus=None,
            only=None,
            device=plan.device.type,
            results_dir=str(Path(plan.request.results_dir).resolve()),
            data_dir=None if plan.request.data_dir is None else str(Path(plan.request.data_dir).resolve()),
        )
        runs = fingerprints(self.queue)
        self.orders = Orders(request, os.getcwd(), token, runs, shape.cpus, self._sharing())

    def _sharing(self) -> int:
        return int(1 / self.shape.gpus + 1e-6) if self.shape.gpus else self.shape.most

    def results(self) -> dict[str, RunResult]:
        """Hand out all runs and hear of them until each has ended."""
        try:
            for _ in range(min(self.shape.workers, self.total)):
                self._start_worker()
            while len(self.outcomes) < self.total:
                if STOP() and not self.stopping:
                    self._stop()
                if self.stopping and not any(hand.item is not None for hand in self.hands):
                    raise RunStoppedError
                if self.alone and not self.queue and not any(hand.item is not None for hand in self.hands):
                    self._go_on_alone()
                self._turn()
            return self.outcomes
        except ConnectionError as error:
            raise ClusterError(
                f"the connection to the cluster was lost: {first_line(error)}",
                hint="what is done is stored; repeat the command",
            ) from error
        finally:
            for hand in self.hands:
                self._end(hand)

    def _start_worker(self) -> None:
        actor = self.actor.options(
            num_cpus=self.shape.cpus,
            num_gpus=self.shape.gpus,
            max_restarts=0,
            scheduling_strategy="SPREAD",
        )
        handle = actor.remote(self.orders)
        self.hands.append(_Hand(handle, handle.listen.remote(LISTEN_SECONDS)))

    def _turn(self) -> None:
        """Hear of some workers, and give the idle ones runs."""
        for hand in self.hands:
            if hand.place is not None and hand.item is None and not self.stopping:
                self._hand_out(hand)
        speaking = {hand.listening: hand for hand in self.hands}
        ready, _ = self.ray.wait(list(speaking), num_returns=len(speaking), timeout=LISTEN_SECONDS / 2)
        for reference in ready:
            hand = speaking[reference]
            try:
                events = self.ray.get(reference)
            except self.ray.exceptions.RayError as error:
                self._lost(hand, error)
                continue
            for event in events:
                self._hear(hand, event)
            if hand in self.hands:
                hand.listening = hand.handle.listen.remote(LISTEN_SECONDS)
        if ready:
            self.room_seen = time.monotonic()
        else:
            self._look_for_room()

    def _hand_out(self, hand: _Hand) -> None:
        """Give the worker the longest run that no other process is making."""
        assert hand.place is not None
        for item in list(self.queue):
            with ExitStack() as stack:
                claim = stack.enter_context(self.store.claim(item.task.id, item.key))
                if claim is None:
                    continue  # another command makes it; asked again at the next turn
                self.queue.remove(item)
                if (record := self._stored_meanwhile(item)) is not None:
                    path = str(self.store.path_of(record))
                    ours = self.deaths[item.key] > 0  # stored by a worker that died before it could say so
                    words = "another process made it meanwhile"
                    self._ended(
                        item, of_record(record, "done", path) if ours else of_record(record, "skipped", path, words)
                    )
                    continue
                if not hand.place.shared:
                    claim.at(hand.place.host, hand.place.pid)
                    hand.claim, hand.claimed = claim, stack.pop_all()
            # where the folder is shared, the claim is free again, and the worker's
            hand.item = item
            hand.handle.begin.remote(item.key)
            return

    def _stored_meanwhile(self, item: Item) -> RunRecord | None:
        if self.plan.request.force and not self.fresh(item):
            return None
        return self.store.get(item.task.id, item.key)

    def _hear(self, hand: _Hand, event: Event) -> None:
        word, *what = event
        if word == "ready":
            (hand.place,) = what
            self.stillborn = 0
        elif word == "start":
            self._begins(what[0])
        elif word == "step":
            run, done, total, text = what
            if hand.claim is not None:
                hand.claim.moved(done, total)
            self.reporter.step(run, done, total, text)
        elif word == "made":
            self._keep_result(hand, what[1], what[2])
        elif word in ("stopped", "crowded"):
            assert hand.item is not None
            if word == "crowded":
                self.alone.append(hand.item)
            self._end(hand)
            if word == "crowded" and not self.hands and self.queue:
                self._start_worker()
        elif word == "refused":
            raise what[0]
        else:
            raise RuntimeError(f"a worker on {hand.place} ended:\n{what[0]}")

    def _begins(self, run: RunName) -> None:
        """A run that begins once more keeps its place."""
        if run.key not in self.positions:
            self.begun += 1
            self.positions[run.key] = self.begun
        self.reporter.start(run, self.positions[run.key], len(self.plan.items))

    def _keep_result(self, hand: _Hand, result: RunResult, files: tuple[bytes, bytes] | None) -> None:
        assert hand.item is not None
        item, hand.item = hand.item, None
        if files is not None:
            result = self._brought(item, *files)
        elif hand.claim is not None:
            reason, began = result.reason or "", self.plan.request.started
            self.store.note_failure(item.task.id, item.key, began, reason)
        hand.claim = None
        hand.claimed.close()
        self._ended(item, result)

    def _brought(self, item: Item, record: bytes, predictions: bytes) -> RunResult:
        """Store what another machine made; what is known of its training text is known here."""
        with tempfile.TemporaryDirectory(prefix="biobench-") as folder:
            path = Path(folder) / "runs" / item.task.id / f"{item.key}.json"
            write_atomic(path, record)
            write_atomic(path.with_suffix(".parquet"), predictions)
            source = Store(folder)
            stored = source.get(item.task.id, item.key)
            assert stored is not None
            known = contamination(
                item.checkpoint.folder,
                item.checkpoint.hash,
                item.task.id,
                stored.task.data_hash,
                self.plan.request.results_dir,
            )
            stored = stored.model_copy(update={"contamination": known})
            self.store.copy(source, stored)
            self.store.note_command(item.task.id, item.key, self.plan.request.started)
        return of_record(stored, "done", str(self.store.path_of(stored)))

    def _ended(self, item: Item, result: RunResult) -> None:
        self.outcomes[item.key] = result
        self.reporter.finish(result)

    def _lost(self, hand: _Hand, error: Exception) -> None:
        """A worker is dead; its run is the next to be handed out, or has failed where too many died of it."""
        item, why = hand.item, first_line(error)
        self._end(hand)
        self.stillborn += hand.place is None
        if self.stillborn >= TRIES:
            raise ClusterError(
                f"{TRIES} workers in a row ended before their first run: {str(error).strip().splitlines()[-1]}",
                hint="every node needs the same Python, biobench and torch as this machine",
            )
        if item is not None:
            self.deaths[item.key] += 1
            host = "a node" if hand.place is None else hand.place.host
            logging.getLogger("biobench").warning(
                "%s, seed %d: the worker on %s was lost (%s)", item.task.id, item.seed, host, why
            )
            if self.deaths[item.key] < TRIES:
                self.queue.appendleft(item)
            else:
                reason = f"{TRIES} workers died of it; the last: {why}"
                self.store.note_failure(item.task.id, item.key, self.plan.request.started, reason)
                names = {"seed": item.seed, "reason": reason, "key": item.key}
                self._ended(
                    item,
                    without_record(self.plan.request, item.task, item.checkpoint.id, "failed", **names),  # type: ignore[arg-type]
                )
        if not self.stopping:
            self._start_worker()

    def _end(self, hand: _Hand) -> None:
        """End a worker, and its claim."""
        self.hands = [other for other in self.hands if other is not hand]
        with suppress(self.ray.exceptions.RayError):
            self.ray.kill(hand.handle, no_restart=True)
        hand.item = hand.claim = None
        hand.claimed.close()

    def _stop(self) -> None:
        """Ask every worker to end at a savepoint."""
        self.stopping = True
        for hand in list(self.hands):
            if hand.item is None:
                self._end(hand)
            else:
                hand.handle.stop.remote()

    def _go_on_alone(self) -> None:
        """One worker with a whole device, or all CPUs of a node, makes the runs that did not fit beside others."""
        for hand in self.hands:
            self._end(hand)
        self.queue.extend(self.alone)
        self.alone = []
        cpus = max(int(node.get("CPU", 0)) for node in nodes(self.ray))
        self.shape = Shape(1, cpus, 1.0 if self.shape.gpus else 0.0, 1)
        self.orders = replace(self.orders, threads=cpus, sharing=1)
        self._start_worker()

    def _look_for_room(self) -> None:
        """Raises ClusterError where for a while no node has had room for a worker."""
        if any(room(node, self.shape.cpus, self.shape.gpus) for node in nodes(self.ray)):
            self.room_seen = time.monotonic()
        elif time.monotonic() - self.room_seen > PATIENCE:
            left = self.total - len(self.outcomes)
            raise ClusterError(
                f"no node of the cluster is left that has room for a worker; {left} runs are not made",
                hint="what is done is stored; add nodes and repeat the command",
            )
