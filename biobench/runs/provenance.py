"""Where and with what a run is made: machine, versions, and what is known of the model's training
text.
"""

from __future__ import annotations

import os
import platform
import re
import subprocess
from datetime import UTC, datetime
from functools import lru_cache
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import ValidationError

from biobench.core.checkpoint_safety import MOST_JSON_BYTES, read_mapping
from biobench.core.files import read_regular
from biobench.core.threads import usable_cpus
from biobench.errors import ModelError
from biobench.schema.contamination import EXCLUSION_FILE, Contamination, Exclusions
from biobench.schema.record import Provenance
from biobench.store.overlaps import find_overlap
from biobench.version import PACKAGE, __version__

if TYPE_CHECKING:
    import torch

_PACKAGES = (
    "torch",
    "transformers",
    "tokenizers",
    "numpy",
    "scikit-learn",
    "seqeval",
    "flash-attn",
)
_DRIVER = r"Kernel Module.*?\s(\d+(?:\.\d+)+)\s"
"""Finds the version of the NVIDIA kernel module."""
_N = 13
"""Words in a row that count as seen; a list made with a longer run excludes less."""


@lru_cache(maxsize=1)
def commit() -> str | None:
    """The checkout's commit, with ``+dirty`` when files differ from it; None for an installed
    wheel.
    """
    root = PACKAGE.parent
    if not (root / ".git").exists():
        return None
    try:
        sha = _git(root, "rev-parse", "HEAD")
        if _git(root, "status", "--porcelain", "--untracked-files=no"):
            sha += "+dirty"
        return sha
    except (OSError, subprocess.CalledProcessError):
        return None


def _git(root: Path, *arguments: str) -> str:
    done = subprocess.run(
        ["git", "-C", str(root), *arguments], capture_output=True, text=True, check=True, timeout=20
    )
    return done.stdout.strip()


@lru_cache(maxsize=1)
def packages() -> dict[str, str]:
    """Versions of the packages that a score can depend on."""
    versions = {}
    for name in _PACKAGES:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return versions


def device_name(device: torch.device | None) -> str:
    """The GPU's or the processor's name, as records hold it."""
    if device is not None and device.type == "cuda":
        import torch

        return str(torch.cuda.get_device_name(device))
    name = _found(r"^model name.*?:(.*)", Path("/proc/cpuinfo"))
    return name or platform.processor() or platform.machine()


def _found(pattern: str, file: Path) -> str | None:
    """What the pattern's group matches in a file of the system; None for no file or no match."""
    match = re.search(pattern, file.read_text(), re.MULTILINE) if file.exists() else None
    return match[1].strip() if match else None


def provenance(device: torch.device | None) -> Provenance:
    """The provenance of a run that starts now on `device`; of what was made elsewhere without it,
    and without torch.
    """
    threads = usable_cpus()
    driver = None
    memory = None
    if hasattr(os, "sysconf"):
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if device is not None:
        import torch

        threads = torch.get_num_threads()
        if device.type == "cuda":
            driver = _found(_DRIVER, Path("/proc/driver/nvidia/version"))
            memory = int(torch.cuda.get_device_properties(device).total_memory)
    return Provenance(
        biobench=__version__,
        commit=commit(),
        packages=packages(),
        python=platform.python_version(),
        platform=f"{platform.system()} {platform.release()} {platform.machine()}",
        device=device_name(device),
        driver=driver,
        device_memory_bytes=memory,
        threads=threads,
        started=datetime.now(UTC).isoformat(timespec="seconds"),
    )


def contamination(
    folder: Path, model_hash: str, task: str, data_hash: str, results_dir: str | Path
) -> Contamination | None:
    """What is known of the text that the checkpoint in `folder` was trained on; None where nothing
    is.

    A measurement in the results folder (`biobench analyze overlap`) comes first. Else the ledger of
    a checkpoint that
    `biobench pretrain` made names the text, and the list next to it says whether the task's
    documents were excluded; a file of that name with other content says nothing. Raises StoreError
    for a damaged measurement.
    """
    measured = find_overlap(results_dir, task, model_hash, data_hash)
    if measured is not None:
        return measured
    try:
        ledger = read_mapping(folder / "ledger.json", "ledger")
        trained_on = Contamination(
            corpus=ledger["name"],
            corpus_hash=ledger["corpus"]["manifest_hash"],
            base=ledger["base"]["source"],
        )
        exclusion_hash = ledger["corpus"]["exclusion_hash"]
    except (ModelError, KeyError, TypeError, ValidationError):
        return None
    try:
        listed = read_regular(folder / EXCLUSION_FILE, MOST_JSON_BYTES, ModelError)
        excluded = Exclusions.model_validate_json(listed)
    except (ModelError, ValidationError):
        return trained_on
    entry = excluded.tasks.get(task)
    holds = entry is not None and entry.data_hash == data_hash
    if holds and excluded.exclusion_hash == exclusion_hash and excluded.ngram <= _N:
        return trained_on.model_copy(update={"excluded": True})
    return trained_on
