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

import signal
import sys
import tempfile
from pathlib import Path

import typer

from tests.benchmarks.gpu.setting import RESULTS, Setting
from tests.benchmarks.gpu.steps import STEPS, run_steps, table


def main(
    only: str = "",
    minutes: float = 9.0,
    out: Path = Path("build/gpu"),
    device: str = "cuda",
    tiny: bool = False,
) -> None:
    """Make the steps, print the table; exit status 1 where one of them is not done.

    --only: names with commas between them. --minutes: for all steps together. --out: folder of the
    results. --device cpu: with --tiny, on tiny models and few steps.
    """
    names = [step.name for step in STEPS]
    chosen = [name for name in only.split(",") if name]
    if unknown := set(chosen) - set(names):
        raise typer.BadParameter(f"unknown step {', '.join(unknown)}; there are {', '.join(names)}")
    if (device, tiny) not in (("cuda", False), ("cuda", True), ("cpu", True)):
        raise typer.BadParameter("give --device cuda, or --device cpu --tiny")
    try:
        out.mkdir(parents=True, exist_ok=True)
        (out / RESULTS).open("a").close()
    except OSError as error:
        reason = f"--out {out}: {error.strerror}; give a folder that can be written"
        raise typer.BadParameter(reason) from error
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))  # and the running step with it
    with tempfile.TemporaryDirectory(prefix="biobench-gpu-") as work:
        setting = Setting(device, tiny, out.resolve(), Path(work))
        lines = run_steps(STEPS, setting, minutes=minutes, only=chosen)
    print(table(STEPS, lines))
    raise typer.Exit(any(lines[name]["status"] != "done" for name in chosen or names))


if __name__ == "__main__":
    typer.run(main)
