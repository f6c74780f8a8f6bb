"""The next task of a plan read and tokenised in a background process, while another trains.

The process leaves windows of tokens in the token cache and nothing else. Entries there are named by their content: a
task whose data change on the way is not found under the old name, and is tokenised when its turn comes. What goes wrong
in the process is not reported: the task's turn meets it again and reports it. A process and not a thread, because
reading and the alignment of words with tokens are Python code, which would take turns with training.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import resource
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from pathlib import Path

from biobench.core.processes import bare_main, end_with_parent
from biobench.core.tokenizer import load_tokenizer
from biobench.data.catalog import load_task
from biobench.data.load import load_data, without_test
from biobench.finetune.prepare import documents_of
from biobench.finetune.token_cache import TokenCache
from biobench.kinds import get_kind

_NICENESS = 5
"""Training goes first wherever both want a CPU."""
_STATUS = Path("/proc/self/status")
_FIRST_VICTIM = Path("/proc/self/oom_score_adj")


@dataclass(frozen=True, slots=True)
class NextTask:
    """What another process needs to read a task and tokenise it: names and numbers, no text.

    spec, overrides, fold: as in `LoadedTask`. tokenizer: the checkpoint's folder. window: tokens. memory: bytes that
    the process may take for it; None for any.
    """

    spec: Path
    overrides: tuple[str, ...]
    fold: int
    data_dir: str | None
    limit: int | None
    no_test: bool
    tokenizer: Path
    trust_remote_code: bool
    window: int
    cache: TokenCache
    memory: int | None = None


class Ahead:
    """One background process, started by the first task that it is given; it works at one task at a time."""

    def __init__(self, serve: Callable[[Connection], None] | None = None) -> None:
        """serve: what the process runs; by default it tokenises each task that it receives."""
        self._serve = serve or tokenise_all
        self._process: SpawnProcess | None = None
        self._pipe: Connection | None = None

    def begin(self, task: NextTask) -> bool:
        """Let the task be tokenised; whether there is a process for that. It drops older ones that it has not begun."""
        try:
            if self._process is None:
                self._start()
            assert self._pipe is not None
            self._pipe.send(task)
        except OSError:
            logging.getLogger("biobench").warning(
                "the process that tokenises the next task does not run; each is tokenised when its turn comes"
            )
            return False
        return True

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        there, self._pipe = context.Pipe(duplex=False)
        process = context.Process(target=self._serve, args=(there,), name="biobench-ahead", daemon=True)
        with there, bare_main():
            process.start()
        self._process = process

    def close(self) -> None:
        """End the process, whatever it is at."""
        if self._pipe is not None:
            self._pipe.close()
        if self._process is not None:
            self._process.kill()
            self._process.join()


def tokenise_all(pipe: Connection) -> None:
    """The background process: tokenise the last task that was received, until the other end is closed."""
    _stand_back()
    while True:
        try:
            task: NextTask = pipe.recv()
            while pipe.poll():
                task = pipe.recv()
        except EOFError:
            return
        with suppress(Exception):  # whatever it is, the task's turn meets it again and reports it
            tokenise(task)


def tokenise(task: NextTask) -> None:
    """Read the task and leave the windows of its large splits in the cache, unless its text is under an agreement.

    Raises whatever reading and tokenising raise.
    """
    loaded = replace(load_task(task.spec, task.overrides), fold=task.fold)
    spec = loaded.spec
    if spec.access == "agreement":  # the file may be another than when the plan was made
        return
    with _at_most(task.memory):
        data = load_data(loaded, task.data_dir, task.limit, offline=True)
        data = without_test(data) if task.no_test else data
        tokenizer = load_tokenizer(task.tokenizer, trust_remote_code=task.trust_remote_code)
        kind = get_kind(spec.type)
        for documents in documents_of(spec, data):
            if task.cache.keeps(kind, documents):
                task.cache.cut(kind, spec, documents, tokenizer, task.window)


def _stand_back() -> None:
    """Ends with its parent, says nothing, and yields to it where CPU time or memory is short."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent hears it too and ends this process
    end_with_parent()
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):
        os.dup2(nowhere, stream)
    os.nice(_NICENESS)
    with suppress(OSError):
        _FIRST_VICTIM.write_text("1000")


@contextmanager
def _at_most(memory: int | None) -> Iterator[None]:
    """Meanwhile allocations beyond what the process has now and `memory` bytes fail."""
    if memory is None or not _STATUS.exists():
        yield
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    now = next(int(line.split()[1]) for line in _STATUS.read_text().splitlines() if line.startswith("VmData:"))
    wanted = 1024 * now + memory
    resource.setrlimit(resource.RLIMIT_DATA, (wanted if hard == resource.RLIM_INFINITY else min(wanted, hard), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))
