"""What a large corpus build costs.

``python -m tests.benchmarks.corpus_scale --documents 3000000 FOLDER`` writes that many synthetic
documents, builds them under a limit of 256 descriptors a process, and prints time and peak memory
of all processes together.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import resource
import time
from multiprocessing import get_context
from pathlib import Path

from trainer.corpus.builder import build
from trainer.corpus.embedded import documents
from trainer.corpus.shards import train_tokenizer
from trainer.recipe.corpus import CorpusSpec

DESCRIPTORS = 256
KINDS = 20_000
"""Different texts; each comes back with another number behind it."""


def write(folder: Path, count: int) -> None:
    """`count` documents of some thirty words as lines."""
    texts = list(documents(min(count, KINDS), seed=11))
    with (folder / "all.lines").open("w", encoding="utf-8") as file:
        for number in range(count):
            file.write(f"{texts[number % len(texts)]} {number}\n")


def built(folder: Path) -> None:
    """Build the corpus in a process group of its own, and print its tokens."""
    os.setsid()
    resource.setrlimit(resource.RLIMIT_NOFILE, (DESCRIPTORS, DESCRIPTORS))
    source = {"id": "all", "path": "all.lines", "format": "lines"}
    spec = CorpusSpec.model_validate(
        {"sources": [source], "sequence_length": 1024, "root": str(folder), "shard_tokens": "50M"}
    )
    tokenizer = train_tokenizer(documents(500, seed=1), 2000, 1024)
    guarded = list(documents(500, seed=11))[::5]
    corpus = build(spec, tokenizer, folder / "cache", exclude=guarded, verify=False)
    print(f"{corpus.manifest['train']['tokens']:,} tokens")


def memory(group: int) -> int:
    """Bytes of all processes of a group, what they share counted once."""
    total = 0
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError, ValueError):
            if os.getpgid(int(entry.name)) == group:
                lines = (entry / "smaps_rollup").read_text().splitlines()
                total += (
                    sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) * 1024
                )
    return total


def main() -> None:
    """Write, build, measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--documents", type=int, default=3_000_000)
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    write(given.folder, given.documents)
    child = get_context("spawn").Process(target=built, args=(given.folder,))
    began, peak = time.perf_counter(), 0
    child.start()
    while child.is_alive():
        child.join(0.25)
        peak = max(peak, memory(child.pid or 0))
    assert child.exitcode == 0
    print(
        f"{given.documents:,} documents: {time.perf_counter() - began:.0f} s, {peak / 2**20:.0f} "
        f"MiB in all processes"
    )


if __name__ == "__main__":
    main()
