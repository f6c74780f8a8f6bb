"""`biobench tasks gate`: what baselines without skill reach on a task, and whether it measures something."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from biobench.cli.console.common import DataDir, Json, Overrides, ResultsDir, Threads, percent, print_json

if TYPE_CHECKING:
    from biobench.schema.baseline import BaselineRecord

_SCORES = ("macro_f1", "micro_f1", "weighted_f1", "macro_f1_all")
_EXPECTS = {
    "text_informative": "the text must tell something of the labels",
    "chance": "the text must tell nothing of the labels",
    "beyond_words": "counted words need not reach the labels",
}


def gate(
    task: Annotated[str, typer.Argument(metavar="ID_OR_YAML")],
    *,
    data_dir: DataDir = None,
    results_dir: ResultsDir = "results",
    overrides: Overrides = [],  # noqa: B006
    threads: Threads = None,
    as_json: Json = False,
) -> None:
    """Score majority, prior, random, dictionary or bag of words, and the oracle; exit 1 where the gate fails."""
    from biobench.baselines import gate as judge
    from biobench.data.catalog import load_task
    from biobench.data.load import load_data
    from biobench.store.baselines import save_baseline

    loaded = load_task(task, overrides)
    data = load_data(loaded, data_dir)
    verdict = judge(loaded, data)
    path = save_baseline(results_dir, verdict)
    if as_json:
        print_json(verdict.model_dump(mode="json") | {"reasons": list(verdict.reasons), "file": str(path)})
    else:
        print_verdict(verdict)
        typer.echo(f"stored: {path}")
    if not verdict.passed:
        raise typer.Exit(1)


def print_verdict(verdict: BaselineRecord) -> None:
    """The baselines' scores in percent (errors on their own scale), every question with its answer, the verdict."""
    from biobench.kinds import is_error

    first = verdict.policies[0].scores
    shown = [name for name in _SCORES if name in first] or list(first)
    lines = [("baseline", *(name.removesuffix("_f1").replace("_f1_", " ") for name in shown))]
    for policy in verdict.policies:
        values = [(name, policy.scores[name]) for name in shown]
        lines.append((policy.name, *(f"{v:.3f}" if is_error(name) else percent(v) for name, v in values)))
    for name, *cells in lines:
        typer.echo(f"{name:<24}" + "".join(f"{cell:>14}" for cell in cells))
    for check in verdict.checks:
        typer.echo(f"{'NO ' if not check.passed else '(!)' if check.flagged else 'ok '} {check.words}")
    message = f"{verdict.task} passes its gate" if verdict.passed else f"{verdict.task} FAILS its gate"
    typer.echo(
        f"{message} ({_EXPECTS[verdict.expect]}): {len(verdict.checks) - len(verdict.reasons)} of "
        f"{len(verdict.checks)} questions answered as they must be, on {verdict.test_documents} test documents, "
        f"{verdict.seconds:.1f} s"
    )
