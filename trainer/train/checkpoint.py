"""The state of a run on disk: weights, moments and one small record, whole or not at all.

A checkpoint is written under a temporary name by all processes (`torch.distributed.checkpoint`), then renamed
by the first, then named in `latest`. Weights and moments go under parameter names, so a checkpoint can be
read by another number of processes, wrapped or not.
"""

from __future__ import annotations

import json
import re
import shutil
import warnings
from collections.abc import Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributed.checkpoint.api import CheckpointException
from torch.distributed.checkpoint.filesystem import FileSystemReader
from torch.distributed.checkpoint.state_dict_loader import load
from torch.distributed.checkpoint.state_dict_saver import async_save, save

from biobench.core.files import cannot_write, file_hash
from biobench.core.text import first_line
from biobench.errors import StoreError
from biobench.schema.strict import Strict
from trainer.disk import REMEDY, write_json, write_text, writing
from trainer.ledger import PhaseRecord
from trainer.train.distributed import World
from trainer.train.optimizer import blank_state, named_state, set_state

PROGRESS = "progress.json"
HASHES = "sha256.json"
LATEST = "latest"
_REMEDY = "delete the damaged folder and name an older one in checkpoints/latest"


class Progress(Strict):
    """Where a run stands; with the weights and moments all that a resume needs."""

    phase: int = 0
    """Index of the phase under way (or next)."""
    step: int = 0
    """Steps done in it."""
    drawn: int = 0
    """Windows drawn so far: the counter that the sample order is a function of."""
    first_sample: int = 0
    order_hash: str = ""
    targets: int = 0
    """Positions with a target so far in the phase."""
    skipped: int = 0
    """Steps of the phase that were not taken because their gradients were a spike."""
    norms: tuple[float, ...] = ()
    """The latest gradient norms, where spikes are skipped."""
    total_steps: int = 0
    total_tokens: int = 0
    seconds: float = 0.0
    done: tuple[PhaseRecord, ...] = ()
    recipe_hash: str = ""
    world_sizes: tuple[int, ...] = ()


@dataclass(frozen=True)
class _Pending:
    """A checkpoint that is being written."""

    future: Future[Any]
    temporary: Path
    final: Path
    progress: Progress


class CheckpointStore:
    """The checkpoints of a run below ``out/checkpoints``."""

    def __init__(self, out: Path, world: World) -> None:
        self.folder = out / "checkpoints"
        self.world = world
        self._pending: _Pending | None = None

    def latest(self) -> Path | None:
        """The newest whole checkpoint, or None. Raises StoreError when `latest` names a missing one."""
        pointer = self.folder / LATEST
        if not pointer.is_file():
            return None
        folder = self.folder / pointer.read_text(encoding="utf-8").strip()
        if not (folder / PROGRESS).is_file():
            raise StoreError("the latest checkpoint is not there", hint=_REMEDY, file=folder)
        return folder

    def save(
        self,
        model: nn.Module,
        optimizer: torch.optim.Optimizer,
        progress: Progress,
        *,
        name: str,
        background: bool = False,
    ) -> Path:
        """Write a checkpoint; `latest` names it once it is whole. Raises StoreError, leaving older ones.

        background: copy the state and return; `finish`, or the next call, waits for the files and names it.
        """
        self.finish()
        final = self.folder / name
        temporary = self.folder / f"{name}.tmp"
        if self.world.first:
            with writing(self.folder):
                self.folder.mkdir(parents=True, exist_ok=True)
                shutil.rmtree(temporary, ignore_errors=True)
        self.world.barrier()
        state = _tensors(model) | {f"optim/{k}": v for k, v in named_state(model, optimizer).items()}
        try:
            with _quiet():
                if background:
                    future = async_save(
                        state,
                        checkpoint_id=temporary,
                        process_group=self.world.saving,
                        no_dist=self.world.size == 1,
                    )
                    assert isinstance(future, Future)
                    self._pending = _Pending(future, temporary, final, progress)
                    return final
                save(state, checkpoint_id=temporary, no_dist=self.world.size == 1)
        except (OSError, CheckpointException, RuntimeError) as error:
            raise self._failed(error, temporary, final) from error
        self._named(temporary, final, progress)
        return final

    def finish(self) -> None:
        """Wait for a checkpoint in the background and name it. Raises StoreError as `save` does."""
        if self._pending is None:
            return
        pending, self._pending = self._pending, None
        try:
            pending.future.result()
        except (OSError, CheckpointException, RuntimeError) as error:
            raise self._failed(error, pending.temporary, pending.final) from error
        self._named(pending.temporary, pending.final, pending.progress)

    def abandon(self) -> None:
        """Wait for a checkpoint in the background and take it away unnamed.

        For a run that ends by an error: what it left would be written on into the folder of whoever continues.
        """
        if self._pending is None:
            return
        pending, self._pending = self._pending, None
        wait([pending.future])
        if self.world.first:
            shutil.rmtree(pending.temporary, ignore_errors=True)

    def _failed(self, error: BaseException, temporary: Path, final: Path) -> StoreError:
        """A failed save as one line: the OSError inside it, or its first cause; nothing half-written stays."""
        if self.world.first:
            shutil.rmtree(temporary, ignore_errors=True)
        causes = list(_causes(error))
        inner = next((cause for cause in causes if isinstance(cause, OSError)), None)
        if inner is not None:
            return cannot_write(final, inner, REMEDY)
        first = next((c for c in causes if not isinstance(c, CheckpointException)), error)
        return StoreError(
            f"the checkpoint cannot be written: {first_line(first, 160)}",
            hint="check free space and permissions, then continue with --resume",
            file=final,
        )

    def _named(self, temporary: Path, final: Path, progress: Progress) -> None:
        """Complete a checkpoint once all processes have written their part."""
        self.world.barrier()
        if self.world.first:
            try:
                self._complete(temporary, final, progress)
            except StoreError:
                shutil.rmtree(temporary, ignore_errors=True)
                raise
        self.world.barrier()

    def _complete(self, temporary: Path, final: Path, progress: Progress) -> None:
        """Hash, describe, rename and name a checkpoint that all processes have written."""
        with writing(final):
            hashes = {f.name: file_hash(f) for f in sorted(temporary.iterdir())}
        write_json(temporary / HASHES, hashes)
        write_text(temporary / PROGRESS, progress.model_dump_json(indent=2))
        with writing(final):
            shutil.rmtree(final, ignore_errors=True)
            temporary.rename(final)
        write_text(self.folder / LATEST, final.name)

    def prune(self, keep: int, keep_phases: bool) -> None:
        """Delete all but the newest `keep` checkpoints within phases (and those at phase ends, unless kept)."""
        if not self.world.first:
            return
        latest = self.latest()
        folders = [f for f in self.folder.iterdir() if f.is_dir() and not f.name.endswith(".tmp")]
        steps = sorted((f for f in folders if f.name.startswith("step-")), key=_number)
        doomed = steps[:-keep] if len(steps) > keep else []
        if not keep_phases:
            doomed += [f for f in folders if f.name.startswith("end-")]
        for folder in doomed:
            if folder != latest:
                shutil.rmtree(folder, ignore_errors=True)


def read_progress(folder: Path) -> Progress:
    """The record of a checkpoint. Raises StoreError when it is damaged."""
    file = folder / PROGRESS
    try:
        return Progress.model_validate_json(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise StoreError("the checkpoint's record is missing or damaged", hint=_REMEDY, file=file) from error


def verify(folder: Path, world: World) -> None:
    """Compare a checkpoint's files with their hashes (first process). Raises StoreError naming a damaged one."""
    if world.first:
        try:
            hashes = json.loads((folder / HASHES).read_text(encoding="utf-8"))
            named = hashes.items() if isinstance(hashes, dict) and hashes else [(HASHES, "")]
            damaged = next((n for n, h in named if file_hash(folder / n) != h), None)
        except ValueError as error:
            raise StoreError(
                f"the checkpoint cannot be read: {HASHES} is damaged", hint=_REMEDY, file=folder
            ) from error
        except OSError as error:
            raise StoreError("the checkpoint cannot be read: a file is missing", hint=_REMEDY, file=folder) from error
        if damaged is not None:
            raise StoreError(f"the checkpoint cannot be read: {damaged} is damaged", hint=_REMEDY, file=folder)
    world.barrier()


def load_weights(folder: Path, model: nn.Module, world: World) -> None:
    """Read a checkpoint's weights into `model`. Raises StoreError when it is damaged."""
    _load(folder, _tensors(model), world)


def load_moments(
    folder: Path, model: nn.Module, optimizer: torch.optim.Optimizer, world: World, *, without: list[str]
) -> None:
    """Read the optimiser's moments, except those of the parameters named in `without`."""
    stored = FileSystemReader(folder).read_metadata().state_dict_metadata
    keys = [k.removeprefix("optim/") for k in stored if k.startswith("optim/")]
    keys = [k for k in keys if k.rpartition("/")[0] not in without]
    blank = blank_state(model, keys)
    _load(folder, {f"optim/{k}": v for k, v in blank.items()}, world)
    set_state(model, optimizer, blank)


def _tensors(model: nn.Module) -> dict[str, Any]:
    return {f"model/{name}": p.detach() for name, p in model.named_parameters()}


def _load(folder: Path, state: dict[str, Tensor], world: World) -> None:
    if not state:
        return
    try:
        with _quiet():
            load(state, checkpoint_id=folder, no_dist=world.size == 1)
    except (OSError, CheckpointException, RuntimeError, ValueError, KeyError, EOFError) as error:
        raise StoreError(
            f"the checkpoint cannot be read: {first_line(error, 160)}", hint=_REMEDY, file=folder
        ) from error


@contextmanager
def _quiet() -> Iterator[None]:
    """Without torch's remark that a single process saves alone."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="torch.distributed is disabled")
        yield


def _causes(error: BaseException) -> Iterator[BaseException]:
    """`error`, and what it was raised from or during; `CheckpointException` keeps the errors of all processes."""
    waiting, seen = [error], set[int]()
    while waiting:
        now = waiting.pop(0)
        if id(now) in seen:
            continue
        seen.add(id(now))
        yield now
        inside = [failure[0] for failure in now.failures.values()] if isinstance(now, CheckpointException) else []
        waiting += [e for e in (*inside, now.__cause__, now.__context__) if e is not None]


def _number(folder: Path) -> int:
    match = re.search(r"(\d+)$", folder.name)
    return int(match[1]) if match else -1
