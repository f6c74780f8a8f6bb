"""`python -m tests.benchmarks.reader_memory [--scale 1] [--format tsv]`: what a reader takes for huge documents.

Four corpora a format: `document`, one text of 10 MB in words; `line`, one of 100 MB without a blank; `empty`, a million
documents without text; `blank`, a million blank lines at the end of each file. Where a document is a file of its own
there are 100,000 instead of a million. --scale multiplies all four. A child writes the corpus, another reads it and
tells the peak of its memory (VmHWM) above that before reading, how long it took, and how the reading ended. The reading
child may allocate --most MiB (RLIMIT_DATA). Any end but a read corpus or an error of the project is a failure.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow.parquet  # noqa: F401  (its memory is no document's)

from biobench.data.load import load_data
from biobench.errors import BioBenchError
from tests.helpers.empty_layouts import EMPTY
from tests.helpers.layouts import LAYOUTS, Row, rows

CASES = ("document", "line", "empty", "blank")
A_FILE_EACH = {"brat", "brat_codes", "mention_table", "paired", "xmi"}
FILES = 100_000
"""Documents where each is a file of its own."""
MOST = 4096
"""MiB above the start that a reader may take at full scale."""


def content(case: str, scale: float) -> list[Row]:
    """Nine sentences, the first of them huge."""
    base = rows()
    if case == "document":
        tail = "and some more words " * int(10_000_000 * scale / 20)
        return [base[0]._replace(tail=tail + "."), *base[1:]]
    if case == "line":
        return [base[0]._replace(tail="x" * int(100_000_000 * scale)), *base[1:]]
    return base


def write(format: str, case: str, scale: float, folder: Path) -> None:
    """The corpus and its spec."""
    layout = LAYOUTS[format]
    (folder / "corpus").mkdir()
    layout.write(folder / "corpus", content(case, scale))
    layout.task(format, folder)
    count = int((FILES if format in A_FILE_EACH else 1_000_000) * scale)
    if case == "empty":
        EMPTY[format](folder / "corpus", count)
    if case == "blank" and not layout.binary:
        for path in (p for p in (folder / "corpus").rglob("*") if p.is_file()):
            with path.open("ab") as stream:
                stream.write(b"\n" * count)


def peak() -> int:
    """Most resident memory of this process so far, in KiB."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.split("VmHWM:")[1].split()[0])


def limit_memory(most: int) -> None:
    """Let this process allocate so many MiB more, and no more."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    now = int(status.split("VmData:")[1].split()[0]) * 1024
    resource.setrlimit(resource.RLIMIT_DATA, (now + most * 2**20, resource.RLIM_INFINITY))


def read(format: str, folder: Path, most: int) -> dict[str, object]:
    """How the reading went, with `most` MiB to allocate."""
    task = LAYOUTS[format].task(format, folder)
    limit_memory(most)
    before, began = peak(), time.process_time()
    try:
        data = load_data(task, folder)
        ended = f"{sum(map(len, data.documents.values()))} documents"
    except BioBenchError as error:
        ended = f"refused: {error.what[:90]}"
        if error.file is None:
            raise ValueError(f"no place: {error}") from error
    return {"mib": round((peak() - before) / 1024), "seconds": time.process_time() - began, "ended": ended}


def measure(format: str, case: str, scale: float, most: int = MOST) -> dict[str, object]:
    """The reading child's answer. Raises RuntimeError where a child ended otherwise."""
    with tempfile.TemporaryDirectory(prefix="biobench-huge-") as folder:
        place = Path(folder)
        _in_child(lambda: write(format, case, scale, place))
        size = sum(p.stat().st_size for p in (place / "corpus").rglob("*") if p.is_file())
        return {**(_in_child(lambda: read(format, place, most)) or {}), "size": round(size / 2**20, 1)}


def _in_child(work: Callable[[], dict[str, object] | None]) -> dict[str, object] | None:
    """What the work gives, done in a process forked from this one, which has imported everything."""
    here, there = multiprocessing.Pipe(duplex=False)
    child = multiprocessing.get_context("fork").Process(target=lambda: there.send(work()))
    child.start()
    there.close()
    try:
        answer: dict[str, object] | None = here.recv()
    except EOFError:
        child.join()
        raise RuntimeError(f"a child ended with {child.exitcode}") from None
    child.join()
    return answer


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a line for each format and case."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--format", action="append", choices=sorted(LAYOUTS))
    parser.add_argument("--case", action="append", choices=CASES)
    parser.add_argument("--most", type=int, default=MOST)
    options = parser.parse_args(arguments)
    failed = 0
    for format in options.format or LAYOUTS:
        for case in options.case or CASES:
            try:
                answer = measure(format, case, options.scale, options.most)
            except RuntimeError as error:
                print(f"{format} {case}: {error}", flush=True)
                failed += 1
                continue
            print(
                f"{format:14} {case:9} {answer['size']:7} MiB: {answer['mib']:5} MiB, "
                f"{answer['seconds']:5.1f} s, {answer['ended']}",
                flush=True,
            )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
