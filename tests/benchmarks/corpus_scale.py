"""What a large corpus build costs, and whether kills change it.

``python -m tests.benchmarks.corpus_scale --documents 3000000 FOLDER`` writes that many synthetic documents, builds
them undisturbed and once more with ten kills (SIGKILL to all processes of the build), both under a limit of 256
descriptors a process, and prints time, peak memory of all processes together and whether the results are equal.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from trainer.corpus.builder import build
from trainer.corpus.embedded import documents
from trainer.corpus.shards import train_tokenizer
from trainer.recipe.corpus import CorpusSpec

DESCRIPTORS = 256
KINDS = 20_000
"""Different texts; each comes back with another number behind it."""


@dataclass(frozen=True)
class Figures:
    """seconds: of the undisturbed build and of the other, restarts included. peak_bytes: the larger of both."""

    documents: int
    tokens: int
    seconds: tuple[float, float]
    killed: int
    peak_bytes: int
    undisturbed: str
    disturbed: str


def write(folder: Path, count: int) -> None:
    """`count` documents of some thirty words as lines."""
    texts = list(documents(min(count, KINDS), seed=11))
    with (folder / "all.lines").open("w", encoding="utf-8") as file:
        for number in range(count):
            file.write(f"{texts[number % len(texts)]} {number}\n")


def built(folder: Path, cache: Path) -> str:
    """Build the corpus; returns its hash."""
    guarded = list(documents(500, seed=11))[::5]
    source = {"id": "all", "path": "all.lines", "format": "lines"}
    spec = CorpusSpec.model_validate(
        {"sources": [source], "sequence_length": 1024, "root": str(folder), "shard_tokens": "50M"}
    )
    tokenizer = train_tokenizer(documents(500, seed=1), 2000, 1024)
    corpus = build(spec, tokenizer, cache, exclude=guarded, verify=False)
    return f"{corpus.hash} {corpus.manifest['train']['tokens']}"


def memory(group: int) -> int:
    """Bytes of all processes of a group, what they share counted once."""
    total = 0
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError, ValueError):
            if os.getpgid(int(entry.name)) == group:
                lines = (entry / "smaps_rollup").read_text().splitlines()
                total += sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) * 1024
    return total


def run(folder: Path, cache: Path, *, kill_after: float | None = None) -> tuple[str, float, int]:
    """One start of the build: (what it printed, '' where it was killed; seconds; peak bytes)."""
    command = f'ulimit -n {DESCRIPTORS} && exec "{sys.executable}" -m tests.benchmarks.corpus_scale --build "$0" "$1"'
    began, peak = time.perf_counter(), 0
    with tempfile.TemporaryFile("w+") as told:
        child = subprocess.Popen(
            ["bash", "-c", command, str(folder), str(cache)],
            stdout=subprocess.PIPE,
            stderr=told,
            text=True,
            start_new_session=True,
        )
        while child.poll() is None:
            time.sleep(0.25)
            peak = max(peak, memory(child.pid))
            if kill_after is not None and time.perf_counter() - began > kill_after:
                os.killpg(child.pid, signal.SIGKILL)
                child.wait()
        assert child.stdout is not None
        said = child.stdout.read()
        if child.returncode not in (0, -signal.SIGKILL):
            told.seek(0)
            raise RuntimeError(told.read()[-3000:])
    return said.strip() if child.returncode == 0 else "", time.perf_counter() - began, peak


def measure(folder: Path, count: int, *, kills: int) -> Figures:
    """Build undisturbed, then with `kills` kills spread over as long as that took."""
    write(folder, count)
    whole, seconds, peak = run(folder, folder / "undisturbed")
    killed, total = 0, 0.0
    said = ""
    while not said:
        after = 6 + seconds / (kills + 4) if killed < kills else None
        said, took, high = run(folder, folder / "disturbed", kill_after=after)
        total, peak = total + took, max(peak, high)
        killed += not said
    return Figures(count, int(whole.split()[1]), (seconds, total), killed, peak, whole, said)


def main() -> None:
    """Measure, or be one of the builds that are measured."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("cache", type=Path, nargs="?")
    parser.add_argument("--documents", type=int, default=3_000_000)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--build", action="store_true")
    given = parser.parse_args()
    if given.build:
        print(built(given.folder, given.cache))
        return
    given.folder.mkdir(parents=True, exist_ok=True)
    f = measure(given.folder, given.documents, kills=given.kills)
    print(
        f"{f.documents:,} documents, {f.tokens:,} tokens: {f.seconds[0]:.0f} s undisturbed, {f.seconds[1]:.0f} s with "
        f"{f.killed} kills; at most {f.peak_bytes / 2**20:.0f} MiB in all processes; "
        f"{'equal' if f.disturbed == f.undisturbed else 'DIFFERENT'}"
    )


if __name__ == "__main__":
    main()
