"""`biobench compare`."""

from __future__ import annotations

from typing import Annotated

import typer

from biobench.cli.console.arguments import Averaging, DataDir, Json, ResultsDir, SliceName, Tasks
from biobench.cli.console.output import print_json, terminal_width


def compare(
    models: Annotated[list[str], typer.Argument()] = [],  # noqa: B006
    *,
    task: Tasks = [],  # noqa: B006
    suite: str | None = None,
    average: Averaging = "paper",
    results_dir: ResultsDir = "results",
    data_dir: DataDir = None,
    rope: float = 0.0,
    alpha: float = 0.05,
    pooled: bool = False,
    plan: str | None = None,
    slice_: SliceName = None,
    as_json: Json = False,
) -> None:
    """Compare models: a verdict in words, then paired differences with intervals and corrected p
    values.

    models (A B...): Models as in the report, or folders.
    suite: A suite, or a YAML file of tasks.
    rope: Points within which two models may be the same.
    alpha: Level of the corrected tests.
    pooled: One verdict over several languages.
    plan: YAML file that declares the comparison.
    """
    from rich.console import Console

    from biobench.comparison.compare import compare as run

    with Console(stderr=True).status("Reading runs and resampling their documents"):
        result = run(
            models,
            results_dir=results_dir,
            data_dir=data_dir,
            suite=suite,
            tasks=task or None,
            average=average,
            rope=rope / 100,
            alpha=alpha,
            pooled=pooled,
            plan=plan,
            slice=slice_,
        )
    if as_json:
        print_json(result.as_json())
    else:
        typer.echo(result.text(terminal_width()), nl=False)
