"""`python -m tests.benchmarks.releases [--data-dir DIR]`: the hash of every available source of every shipped task.

A line each: task, source, hash of its documents, and the release that the spec knows by it. Where the spec knows none,
or another, the hash is what `releases` of the spec's source would name, if the files are those of the release.
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from biobench.data.catalog import LoadedTask, list_tasks
from biobench.data.load import hashed_parts
from biobench.data.locate import data_folder, locate
from biobench.data.releases import release_of


def hashes(tasks: Sequence[LoadedTask], data_dir: Path) -> Iterator[tuple[LoadedTask, str, str]]:
    """(task, source, data hash) of each source whose files are there; generated data is left out."""
    for task in tasks:
        for source in task.spec.all_sources:
            place = locate(source, data_dir)
            if place.complete and not source.generated:
                yield task, source.id, hashed_parts(dataclasses.replace(task, fold=0), place, data_dir)[1]


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the lines; 1 where a spec knows releases of a source and the data are none of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data-dir", type=Path, default=data_folder())
    wrong = 0
    for task, source, digest in hashes(list_tasks(), parser.parse_args(arguments).data_dir):
        release = release_of(task, source, digest)
        wrong += release is None and bool(task.source(source).releases)
        print(f"{task.id} {source} {digest} {release or '-'}", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
