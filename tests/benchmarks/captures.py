"""What the command line shows, at 80 and at 120 columns: writes docs/terminal.md.

`python -m tests.benchmarks.captures [--demo FOLDER]` runs every command of the page; FOLDER holds the demo's results,
which are made there if they are not (minutes). What is `checked` depends on nothing but the code: a test compares it
with the page. The other blocks hold seconds and scores of the machine that made them.
"""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.helpers.report_make import save_runs

ROOT = Path(__file__).parent.parent.parent
PAGE = ROOT / "docs" / "terminal.md"
WIDTHS = (80, 120)
Run = Callable[[list[str]], str]
"""Arguments of `biobench` to what it prints, stderr after stdout, in the folder of the captures."""

_SMALL = "--limit 32 --set training.epochs=1 --no-gate --device cpu --parallel 1"
_SHIPPED = ("all-MiniLM-L6-v2 [small protocol]", "paraphrase-MiniLM-L3-v2 [small protocol]")
_BOTH = "--task demo_topic --task demo_ner"
_WORDS = """\
# What the terminal shows

Made by `python -m tests.benchmarks.captures`; the tests compare what does not depend on the machine. Tables take the
width of the terminal; in files and pipes they are as wide as `COLUMNS` says, else wide enough for a suite.
"""


@dataclass(frozen=True)
class Moment:
    """A heading, what to say of it, its commands, and whether a test compares what they print."""

    title: str
    words: str
    commands: tuple[str, ...]
    checked: bool = True


MOMENTS = (
    Moment("A dry run", "One line for all seeds of a task; nothing is made.", (f"run dummy {_BOTH} --dry-run",)),
    Moment(
        "The end of a run",
        "`dummy` is a random tiny encoder, so the scores say nothing.",
        (f"run dummy --name tiny {_BOTH} --seeds 42-44 {_SMALL} --results-dir runs",),
        checked=False,
    ),
    Moment("The report", "Generated runs of two models beside the published scores of their tasks.", ("report",)),
    Moment(
        "A declared suite",
        "Its own groups and scores; `report --suite blurb` has runs and averages too.",
        ("report --suite drbenchmark",),
    ),
    Moment(
        "A comparison",
        "Of runs that stand in this repository, `results/`.",
        (f"compare '{_SHIPPED[0]}' '{_SHIPPED[1]}' --results-dir shipped",),
    ),
    Moment(
        "Errors",
        "One line that says what is wrong, one that says what to do; exit status 2.",
        (
            "run dummy --task gadd",
            "run ./nowhere --task gad",
            "run dummy --task gad --set learning_rate=1e-5",
            "run dummy --task ncbi_disease_synonyms",
            "report --results-dir reslts",
            "compare my-org/new my-org/odl",
        ),
    ),
)
DEMO = Moment("The demo", "`biobench demo`, given again when its models and runs were there.", (), checked=False)


def prepare(folder: Path) -> None:
    """The generated runs that the page shows, and the repository's own."""
    shutil.copytree(ROOT / "results", folder / "shipped", ignore=shutil.ignore_patterns("published"))
    results = folder / "results"
    for model, task, scores in (
        ("my-org/new", "gad", (0.790, 0.801, 0.795)),
        ("my-org/new", "hoc", (0.690, 0.681, 0.686)),
        ("my-org/new", "bc5cdr", (0.871, 0.866, 0.869)),
        ("my-org/old", "gad", (0.770, 0.751, 0.765)),
        ("my-org/old", "hoc", (0.671, 0.690, 0.668)),
        ("my-org/old", "bc5cdr", (0.852, 0.849, 0.855)),
    ):
        save_runs(results, model, task, dict(zip((42, 43, 44), scores, strict=True)))


def block(moment: Moment, run: Run) -> str:
    """The commands and what they print, as they stand on the page."""
    parts = [f"$ biobench {command}\n{run(shlex.split(command))}" for command in moment.commands]
    return "\n".join(line.rstrip() for line in "\n".join(parts).splitlines()).rstrip() + "\n"


def blocks_of(page: str) -> Iterator[tuple[str, int, str]]:
    """(title, width, block) of each block of a page."""
    for section in page.split("\n## ")[1:]:
        title, _, rest = section.partition("\n")
        for part in rest.split("\n```text ")[1:]:
            head, _, body = part.partition("\n")
            yield title, int(head.split("=")[1].strip('"').split()[0]), body.partition("```")[0]


def _process(folder: Path, width: int) -> Run:
    def run(arguments: list[str]) -> str:
        clean = {k: v for k, v in os.environ.items() if not k.startswith("BIOBENCH_")}
        environment = clean | {"COLUMNS": str(width), "OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}
        command = [sys.executable, "-m", "biobench", *arguments]
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
        progress = done.stderr if done.returncode == 2 else ""
        return done.stdout + progress

    return run


def page(demo: Path | None) -> str:
    """The whole page. demo: folder of the demo's results; None: the page is without it."""
    parts = [_WORDS]
    with TemporaryDirectory() as name:
        folders = {width: Path(name) / str(width) for width in WIDTHS}
        for folder in folders.values():
            prepare(folder)
        for moment in (*MOMENTS, *([] if demo is None else [DEMO])):
            commands = moment.commands or (f"demo --results-dir {demo and demo.name}",)
            parts.append(f"## {moment.title}\n\n{moment.words}\n")
            for width, folder in folders.items():
                run = _process(folder if demo is None or moment.commands else demo.parent, width)
                text = block(Moment(moment.title, "", commands), run)
                parts.append(f'```text title="{width} columns"\n{text}```\n')
    return "\n".join(parts)


def main() -> None:
    """Write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--demo", type=Path, help="folder of the demo's results; without it the page has no demo")
    demo: Path | None = parser.parse_args().demo
    PAGE.write_text(page(demo and demo.absolute()), encoding="utf-8")


if __name__ == "__main__":
    main()
