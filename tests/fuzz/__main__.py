"""`python -m tests.fuzz --inputs 100000 [--target zip]`: generated input for all readers, findings
as files.

Each target runs in a process of its own with 4 GiB, so that a library that falls over is a finding
as well. What is found is written to --out as `<target>-<hash>`; copied to `tests/fixtures/fuzz/`,
it is read by the tests ever after.
"""

from __future__ import annotations

import argparse
import hashlib
import resource
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from biobench.errors import BioBenchError
from tests.fuzz.targets import targets

MEMORY = 4 * 2**30
SECONDS = 5.0
"""Processor time for one input, all of which are small; more is a finding."""
PIECES = [
    b"",
    b"\0",
    b"\xff",
    b"\xff\xff\xff\xff",
    b"\n",
    b"\r\n",
    b'"',
    b"{",
    b"]",
    b"\t",
    b"-1",
    b": ",
    b"- ",
]
PIECES += [
    b"NaN",
    b"null",
    b"../",
    b"*a",
    b"&a",
    b"!!python/object",
    b"PAR1",
    b"PK\x03\x04",
    b"PK\x01\x02",
]
PIECES += [b"PK\x05\x06", b"1e999", b"9" * 30, b"A" * 5_000, b"[" * 3_000, b"\x80", b"\xed\xa0\x80"]
PIECES += [b"\xef\xbb\xbf", "\u202e\u0301".encode()]


def edits() -> st.SearchStrategy[list[tuple[float, int, bytes]]]:
    """(place as a share of the file, bytes taken out, bytes put in)."""
    piece = st.one_of(st.sampled_from(PIECES), st.binary(max_size=8))
    one = st.tuples(st.floats(0, 1), st.sampled_from([0, 0, 1, 1, 2, 4, 8, 64, 10**6]), piece)
    return st.lists(one, min_size=1, max_size=6)


def edited(content: bytes, changes: list[tuple[float, int, bytes]]) -> bytes:
    """The content after all changes, one after the other."""
    made = bytearray(content)
    for share, out, put in changes:
        at = int(share * len(made))
        made[at : at + out] = put
    return bytes(made)


def fuzz(name: str, inputs: int, number: int, out: Path) -> bool:
    """Give a target that many inputs; whether something was found. The first finding is made small
    and written.
    """
    target = targets()[name]
    tried, slowest, finding = 0, (0.0, b""), b""
    with suppress(BioBenchError):
        target.read(target.seeds[0])  # what it imports is no input's time

    @seed(number)
    @settings(
        max_examples=inputs,
        deadline=None,
        database=None,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
    )
    @given(st.integers(0, len(target.seeds) - 1), edits())
    def check(which: int, changes: list[tuple[float, int, bytes]]) -> None:
        nonlocal tried, slowest, finding
        content = edited(target.seeds[which], changes)
        tried += 1
        began = time.process_time()
        try:
            target.read(content)
        except BioBenchError as error:
            if "\n" in str(error) or not error.hint:
                finding = content
                raise ValueError("an error of several lines or without a hint") from error
        except Exception:
            finding = content
            raise
        slowest = max(slowest, (time.process_time() - began, content))

    failure = ""
    try:
        check()
    except Exception as error:
        failure = f"{type(error).__name__}: {error}"
    if not failure and slowest[0] > SECONDS:
        failure, finding = (
            f"an input of {len(slowest[1])} bytes took {slowest[0]:.1f} s",
            slowest[1],
        )
    print(
        f"{name}: {tried} inputs, slowest {slowest[0]:.2f} s of processor time {failure[:300]}",
        flush=True,
    )
    if failure:
        out.mkdir(exist_ok=True)
        (out / f"{name}-{hashlib.sha256(finding).hexdigest()[:12]}").write_bytes(finding)
    return bool(failure)


def main() -> int:
    """0 where nothing was found."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--inputs", type=int, default=2_000)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--target", action="append")
    parser.add_argument("--out", type=Path, default=Path("fuzz-findings"))
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        return fuzz(options.target[0], options.inputs, options.seed, options.out)
    findings, shares = 0, {name: target.share for name, target in targets().items()}
    for name in options.target or shares:
        inputs = max(1, options.inputs * (100 if options.target else shares[name]) // 100)
        words = ["--child", "--target", name, "--inputs", str(inputs), "--seed", str(options.seed)]
        command = [sys.executable, "-m", "tests.fuzz", *words, "--out", str(options.out)]
        status = subprocess.run(command, check=False).returncode
        findings += status != 0
        if status not in (0, 1):
            print(f"{name}: the process ended with {status}", flush=True)
    print(f"{findings} findings (seed {options.seed})")
    return int(findings > 0)


if __name__ == "__main__":
    sys.exit(main())
