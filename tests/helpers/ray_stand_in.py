"""As much of Ray as `runs.cluster` asks for, with threads of this process for workers: CI has no Ray.

The real one is tried by `tests/runs/test_ray_cluster.py`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from types import SimpleNamespace
from typing import Any


class LostError(Exception):
    """What Ray raises of an actor that is dead."""


class Actor:
    """A worker whose methods answer through futures; `kill` makes each answer of it an error."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self.dead: str | None = None
        try:
            self.target = make()
        except ImportError as error:
            self.dead = f"creation failed\n{error}"

    def __getattr__(self, name: str) -> Any:
        return SimpleNamespace(remote=lambda *arguments: self._called(name, arguments))

    def _called(self, name: str, arguments: tuple[Any, ...]) -> Future[Any]:
        answer: Future[Any] = Future()

        def work() -> None:
            value = None if self.dead else getattr(self.target, name)(*arguments)
            if self.dead:
                answer.set_exception(LostError(self.dead))
            else:
                answer.set_result(value)

        threading.Thread(target=work, daemon=True).start()
        return answer


class RayStandIn:
    """The module. nodes: what `ray.nodes` says of each."""

    def __init__(self, *nodes: dict[str, float]) -> None:
        self.resources = list(nodes)
        self.actors: list[Actor] = []
        self.reserved: list[dict[str, Any]] = []
        self.exceptions = SimpleNamespace(RayError=LostError)
        self.is_silent = False
        """Whether no worker answers, as where none has found a place."""

    def nodes(self) -> list[dict[str, Any]]:
        return [{"Resources": node, "Alive": True} for node in self.resources]

    def remote(self, kind: type) -> Any:
        def options(**reserved: Any) -> Any:
            def start(*arguments: Any) -> Actor:
                actor = Actor(lambda: kind(*arguments))
                self.actors.append(actor)
                self.reserved.append(reserved)
                return actor

            return SimpleNamespace(remote=start)

        return SimpleNamespace(options=options)

    def wait(
        self, references: Sequence[Future[Any]], num_returns: int, timeout: float
    ) -> tuple[list[Future[Any]], list[Future[Any]]]:
        if self.is_silent:
            return [], list(references)
        done, rest = wait(references, timeout=timeout, return_when=FIRST_COMPLETED)
        return list(done)[:num_returns], list(rest)

    @staticmethod
    def get(reference: Future[Any]) -> Any:
        return reference.result()

    @staticmethod
    def kill(actor: Actor, no_restart: bool) -> None:
        actor.dead = actor.dead or "killed"
