"""The state of a run on disk: weights, moments and one small record, whole or not at all.

A checkpoint is written under a temporary name by all processes (`torch.distributed.checkpoint`),
then renamed by the first, then named in `latest`. Weights and moments go under parameter names, so
a checkpoint can be read by another number of processes, wrapped or not.
"""

from __future__ import annotations

import shutil
import warnings
from pathlib import Path
from typing import Any

import torch
from pydantic import ConfigDict
from torch import Tensor, nn
from torch.distributed.checkpoint.api import CheckpointException
from torch.distributed.checkpoint.filesystem import FileSystemReader
from torch.distributed.checkpoint.state_dict_loader import load
from torch.distributed.checkpoint.state_dict_saver import save

from biobench.core.files import cannot_write
from biobench.core.text import first_line
from biobench.errors import StoreError
from biobench.schema.strict import Strict
from trainer.disk import PLACE, make_folder, read_json, write_text, writing
from trainer.ledger import PhaseRecord
from trainer.train.distributed import World

# a single process is not distributed, and need not be told so
warnings.filterwarnings("ignore", message="torch.distributed is disabled")

FOLDER = "checkpoints"
PROGRESS = "progress.json"
LATEST = "latest"
_MOMENTS = "optim/"
_REMEDY = "delete the damaged folder and name an older one in checkpoints/latest"


class Progress(Strict):
    """How far a run is; with the weights and moments all that a resume needs."""

    # fields of checkpoints that older versions wrote are ignored
    model_config = ConfigDict(extra="ignore", frozen=False)

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
    total_steps: int = 0
    total_tokens: int = 0
    seconds: float = 0.0
    done: tuple[PhaseRecord, ...] = ()
    recipe_hash: str = ""
    world_sizes: tuple[int, ...] = ()


def latest_checkpoint(out: Path) -> Path | None:
    """The newest whole checkpoint of a run, or None. Raises StoreError when `latest` names a
    missing one.
    """
    pointer = out / FOLDER / LATEST
    if not pointer.is_file():
        return None
    folder = out / FOLDER / pointer.read_text(encoding="utf-8").strip()
    if not (folder / PROGRESS).is_file():
        raise StoreError("the latest checkpoint is not there", hint=_REMEDY, file=folder)
    return folder


def read_progress(folder: Path) -> Progress:
    """The record of a checkpoint. Raises StoreError when it is damaged."""
    return read_json(
        Progress, folder / PROGRESS, "the checkpoint's record is missing or damaged", _REMEDY
    )


def save_checkpoint(
    out: Path,
    world: World,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    progress: Progress,
    *,
    name: str,
) -> Path:
    """Write a checkpoint; `latest` names it once it is whole. Called by all processes.

    Raises StoreError, leaving older checkpoints.
    """
    final = out / FOLDER / name
    temporary = final.with_name(f"{name}.tmp")
    if world.first:
        make_folder(final.parent)
        shutil.rmtree(temporary, ignore_errors=True)
    world.barrier()
    state = _tensors(model)
    for parameter_name, parameter in model.named_parameters():
        for moment, value in optimizer.state.get(parameter, {}).items():
            state[f"{_MOMENTS}{parameter_name}/{moment}"] = value
    try:
        save(state, checkpoint_id=temporary, no_dist=world.size == 1)
        world.barrier()
        if world.first:
            write_text(temporary / PROGRESS, progress.model_dump_json(indent=2))
            with writing(final):
                shutil.rmtree(final, ignore_errors=True)
                temporary.rename(final)
            write_text(final.parent / LATEST, name)
    except (OSError, CheckpointException, RuntimeError) as error:
        raise cannot_write(final, _refusal(error), PLACE) from error
    finally:
        if world.first:
            shutil.rmtree(temporary, ignore_errors=True)
    world.barrier()
    return final


def _refusal(error: BaseException) -> OSError:
    """Why the system did not take a write: its error lies below torch's."""
    if isinstance(error, CheckpointException):
        error = next((inner for inner, _ in error.failures.values()), error)
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, OSError):
        cause = cause.__cause__ or cause.__context__
    return cause or OSError(first_line(error, 160))


def prune(out: Path, keep: int, *, keep_phases: bool) -> None:
    """Delete all but the newest `keep` checkpoints within phases, and those at phase ends unless
    `keep_phases`.
    """
    checkpoints = out / FOLDER
    steps = sorted(checkpoints.glob("step-*[0-9]"), key=lambda file: (len(file.name), file.name))
    stale = set(steps[:-keep])
    if not keep_phases:
        stale |= {end for end in checkpoints.glob("end-*") if end.suffix != ".tmp"}
    for folder in stale - {latest_checkpoint(out)}:
        shutil.rmtree(folder, ignore_errors=True)


def load_weights(folder: Path, model: nn.Module, world: World) -> None:
    """Read a checkpoint's weights into `model`. Raises StoreError when it is damaged."""
    _load(folder, _tensors(model), world)


def load_moments(
    folder: Path, model: nn.Module, optimizer: torch.optim.Optimizer, world: World
) -> None:
    """Read the optimiser's moments.

    A parameter that was frozen until now has none there and gets none here, so that its first step
    counts as its first.
    """
    parameters = dict(model.named_parameters())
    state: dict[str, Tensor] = {}
    for key in FileSystemReader(folder).read_metadata().state_dict_metadata:
        if not key.startswith(_MOMENTS):
            continue
        name, _, moment = key.removeprefix(_MOMENTS).rpartition("/")
        parameter = parameters[name]
        state[key] = torch.zeros_like(parameter.detach())
        if moment == "step":
            state[key] = torch.zeros((), device=parameter.device)
        optimizer.state[parameter][moment] = state[key]
    _load(folder, state, world)


def _tensors(model: nn.Module) -> dict[str, Any]:
    return {f"model/{name}": p.detach() for name, p in model.named_parameters()}


def _load(folder: Path, state: dict[str, Any], world: World) -> None:
    if not state:
        return
    try:
        load(state, checkpoint_id=folder, no_dist=world.size == 1)
    except (OSError, CheckpointException, RuntimeError, ValueError, KeyError, EOFError) as error:
        raise StoreError(
            f"the checkpoint cannot be read: {first_line(error, 160)}", hint=_REMEDY, file=folder
        ) from error
