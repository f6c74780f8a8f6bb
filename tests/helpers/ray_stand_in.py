"""As much of Ray as `biobench.runs.ray` asks for, with threads of this process for tasks: CI has no
Ray.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ALL_COMPLETED, FIRST_COMPLETED, Future, wait
from types import SimpleNamespace
from typing import Any


class LostError(Exception):
    """What Ray raises of a task whose process or node died as often as it is tried; a task raises
    it to die.
    """


class TaskError(LostError):
    """What Ray raises of a task that raised."""


class RayStandIn:
    """The module. nodes: what `ray.nodes` says of each; a task takes a CPU while it runs."""

    def __init__(self, *nodes: dict[str, float]) -> None:
        self.resources = list(nodes)
        self.places = threading.Semaphore(sum(int(node["CPU"]) for node in nodes))
        self.reserved: list[dict[str, Any]] = []
        self.exceptions = SimpleNamespace(RayError=LostError, RayTaskError=TaskError)

    @staticmethod
    def is_initialized() -> bool:
        return True

    def nodes(self) -> list[dict[str, Any]]:
        return [{"Resources": node, "Alive": True} for node in self.resources]

    def remote(self, function: Callable[..., Any]) -> Any:
        def options(**reserved: Any) -> Any:
            return SimpleNamespace(remote=lambda *words: self._begin(function, words, reserved))

        return SimpleNamespace(options=options)

    def _begin(
        self, function: Callable[..., Any], words: tuple[Any, ...], reserved: dict[str, Any]
    ) -> Future[Any]:
        answer: Future[Any] = Future()
        self.reserved.append(reserved)

        def work() -> None:
            with self.places:
                for left in range(reserved["max_retries"], -1, -1):
                    try:
                        answer.set_result(function(*words))
                        return
                    except LostError as error:
                        if not left:
                            answer.set_exception(error)
                    except Exception as error:
                        answer.set_exception(
                            TaskError(f"Traceback of the task\n{type(error).__name__}: {error}")
                        )
                        return

        threading.Thread(target=work, daemon=True).start()
        return answer

    @staticmethod
    def wait(
        references: Sequence[Future[Any]], num_returns: int, timeout: float
    ) -> tuple[list[Future[Any]], list[Future[Any]]]:
        when = FIRST_COMPLETED if num_returns == 1 else ALL_COMPLETED
        done = list(wait(references, timeout=timeout, return_when=when).done)[:num_returns]
        return done, [reference for reference in references if reference not in done]

    @staticmethod
    def get(reference: Future[Any]) -> Any:
        return reference.result()

    @staticmethod
    def cancel(reference: Future[Any], force: bool) -> None:
        """A task of this process sees the same request to stop as the command."""
        assert not force
