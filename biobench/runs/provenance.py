"""Where and with what a run is made."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from datetime import UTC, datetime
from functools import lru_cache
from importlib import metadata
from pathlib import Path

import torch

import biobench
from biobench.schema.record import Provenance

_PACKAGES = ("torch", "transformers", "tokenizers", "numpy", "scikit-learn", "seqeval", "flash-attn")


@lru_cache(maxsize=1)
def commit() -> str | None:
    """The checkout's commit, with ``+dirty`` when files differ from it; None for an installed wheel."""
    root = Path(biobench.__file__).resolve().parents[1]
    if not (root / ".git").exists():
        return None
    try:
        sha = _git(root, "rev-parse", "HEAD")
        return sha + ("+dirty" if _git(root, "status", "--porcelain", "--untracked-files=no") else "")
    except (OSError, subprocess.CalledProcessError):
        return None


def _git(root: Path, *arguments: str) -> str:
    done = subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, text=True, check=True, timeout=20)
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


def device_name(device: torch.device) -> str:
    """The GPU's or the processor's name, as records hold it."""
    if device.type == "cuda":
        return str(torch.cuda.get_device_name(device))
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def _driver(device: torch.device, version: Path = Path("/proc/driver/nvidia/version")) -> str | None:
    """Version of the NVIDIA kernel module, where that is what drives the device."""
    if device.type != "cuda" or not version.exists():
        return None
    match = re.search(r"Kernel Module.*?\s(\d+(?:\.\d+)+)\s", version.read_text())
    return match[1] if match else None


def _memory(device: torch.device) -> int | None:
    """Bytes of the device's memory; of the machine's on a CPU, None where the system does not tell."""
    if device.type == "cuda":
        return int(torch.cuda.get_device_properties(device).total_memory)
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):
        return None


def provenance(device: torch.device) -> Provenance:
    """The provenance of a run that starts now on `device`."""
    return Provenance(
        biobench=biobench.__version__,
        commit=commit(),
        packages=packages(),
        python=platform.python_version(),
        platform=f"{platform.system()} {platform.release()} {platform.machine()}",
        device=device_name(device),
        driver=_driver(device),
        device_memory_bytes=_memory(device),
        threads=torch.get_num_threads(),
        started=datetime.now(UTC).isoformat(timespec="seconds"),
    )
