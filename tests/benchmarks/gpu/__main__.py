r"""Everything that is to be known of a GPU, measured in one go on a machine without a network.

On a machine with a network, in the checkout (six wheels, 3.3 MB in all):

    pip download --no-deps --only-binary=:all: --python-version 3.12 --implementation cp \
        --platform manylinux_2_28_x86_64 --platform manylinux_2_17_x86_64 \
        -c constraints.txt -d build/wheels \
        pydantic pydantic-core annotated-types typing-inspection accelerate psutil

On the GPU machine (Python 3.12 with torch 2.11, transformers 5.17, pandas, pyarrow and
scikit-learn), in the checkout, which `build/wheels` travels with:

    pip install --no-index --no-deps --target build/site build/wheels/*.whl
    PYTHONPATH=build/site python3 -m tests.benchmarks.gpu --out DIR --minutes 9

The results are lines of JSON in DIR/gpu.jsonl, one a step. The same command again makes the steps
that are not there yet; `--only STEP` repeats one that failed or timed out. `--device cpu --tiny`
runs every step on a CPU with stand-in kernels and tiny models: its figures mean nothing.
"""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
from pathlib import Path

from tests.benchmarks.gpu.setting import RESULTS, Setting
from tests.benchmarks.gpu.steps import STEPS, run_steps, table


def main() -> int:
    """Make the steps, print the table; exit status 1 where one of them is not done."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.benchmarks.gpu",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    names = [step.name for step in STEPS]
    parser.add_argument("--only", default="", help=f"with commas between them: {', '.join(names)}")
    parser.add_argument("--minutes", type=float, default=9.0, help="time for all steps together")
    parser.add_argument("--out", type=Path, default=Path("build/gpu"), help=f"folder of {RESULTS}")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--tiny", action="store_true", help="tiny models and few steps")
    given = parser.parse_args()
    chosen = [name for name in given.only.split(",") if name]
    if unknown := set(chosen) - set(names):
        parser.error(f"unknown step {', '.join(sorted(unknown))}; there are {', '.join(names)}")
    if given.device == "cpu" and not given.tiny:
        parser.error("--device cpu takes hours without --tiny")
    try:
        given.out.mkdir(parents=True, exist_ok=True)
        (given.out / RESULTS).open("a").close()
    except OSError as error:
        parser.error(f"--out {given.out}: {error.strerror}; give a folder that can be written")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))  # and the running step with it
    with tempfile.TemporaryDirectory(prefix="biobench-gpu-") as work:
        setting = Setting(given.device, given.tiny, given.out.resolve(), Path(work))
        lines = run_steps(STEPS, setting, minutes=given.minutes, only=chosen)
    print(table(STEPS, lines))
    return int(any(lines[name]["status"] != "done" for name in chosen or names))


if __name__ == "__main__":
    raise SystemExit(main())
