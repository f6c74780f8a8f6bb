"""`biobench analyze cka`: how far two checkpoints have come apart, layer by layer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from biobench.cli.analyze import runs as analyze_runs
from biobench.cli.console.common import Json, Threads, print_json
from biobench.core.packages import check_ours
from biobench.errors import UsageError

if TYPE_CHECKING:
    from trainer.analysis.cka import CkaReport, Value
    from trainer.analysis.states import Kind


def register(app: typer.Typer) -> None:
    """Add the command to the group."""
    app.command("cka")(cka)


def cka(
    first: Annotated[str, typer.Argument(metavar="A", help="Folder or hub id of a checkpoint.")],
    second: Annotated[str, typer.Argument(metavar="B")],
    *,
    texts: Annotated[
        str, typer.Option("--texts", help="Held-out texts: file, folder (txt, jsonl, parquet), hub:ID, or embedded.")
    ],
    noise: Annotated[
        tuple[str, str] | None,
        typer.Option("--noise", metavar="C D", help="Two checkpoints that differ by the training seed alone."),
    ] = None,
    noise_pair: Annotated[
        list[str], typer.Option("--noise-pair", metavar="C=D", help="A further noise pair; repeatable.")
    ] = [],  # noqa: B006
    series: Annotated[
        list[str],
        typer.Option("--series", metavar="A1=B1", help="An earlier pair of the same runs, in order; repeatable."),
    ] = [],  # noqa: B006
    n: Annotated[int, typer.Option("--n", min=5, help="Texts in each drawing.")] = 500,
    seeds: Annotated[str, typer.Option("--seeds", help="Seeds of the drawings.")] = "42,43,44",
    states: Annotated[
        str, typer.Option("--states", help="mean (over tokens), token (one drawn token a text) or tokens (all).")
    ] = "mean",
    max_length: Annotated[int, typer.Option("--max-length", min=8, help="Longest text in tokens.")] = 512,
    field: Annotated[str, typer.Option("--field", help="Column or key that holds the text.")] = "text",
    device: Annotated[str, typer.Option("--device", help="auto, cpu or cuda.")] = "auto",
    threads: Threads = None,
    dtype: Annotated[str, typer.Option("--dtype", help="float32 or bfloat16, for the forward pass alone.")] = "float32",
    estimator: Annotated[str, typer.Option("--estimator", help="Of the figure: debiased or biased.")] = "debiased",
    figure: Annotated[list[str], typer.Option("--figure", help="Write a figure: .svg, .png, .html, .json.")] = [],  # noqa: B006
    as_json: Json = False,
) -> None:
    """Divergence (1 - CKA) of two checkpoints' states, layer by layer, beside seed noise."""
    from biobench.models.loading import quiet_libraries

    check_ours("trainer")
    quiet_libraries()
    from biobench.core.machine import resolve_device
    from biobench.report.details.mechanism import cka_chart
    from trainer.analysis import cka as analysis_cka
    from trainer.analysis.states import check_dtype, check_shapes, sample

    kind = _kind(states)
    if estimator not in analysis_cka.ESTIMATORS:
        raise UsageError(f"unknown estimator '{estimator}'", hint="debiased or biased")
    for path in figure:
        analysis_cka.check_ending(path)
    # all tokens of one drawing are many more than other drawings would add
    drawings = _seeds(seeds)[: 1 if kind == "tokens" else None]
    pairs = [*([noise] if noise else []), *(_pair(text, "--noise-pair") for text in noise_pair)]
    points = [_pair(text, "--series") for text in series]
    # what cannot work is said before a large corpus is read for its texts
    check_dtype(dtype)
    resolve_device(device)
    check_shapes([name for pair in ((first, second), *pairs, *points) for name in pair])
    report = analysis_cka.compare(
        first,
        second,
        sample(texts, n, drawings, field),
        noise=pairs,
        series=points,
        states=kind,
        max_length=max_length,
        device=device,
        dtype=dtype,
        notify=lambda line: typer.echo(line, err=True),
    )
    for path in figure:
        analysis_cka.save(cka_chart(report.as_json(), estimator=estimator), path)
    if as_json:
        print_json(report.as_json())
    else:
        _print(report)


def _kind(states: str) -> Kind:
    kinds: dict[str, Kind] = {"mean": "mean", "token": "token", "tokens": "tokens"}
    if states not in kinds:
        raise UsageError(f"unknown states '{states}'", hint="mean, token or tokens")
    return kinds[states]


def _pair(text: str, option: str) -> tuple[str, str]:
    first, sign, second = text.partition("=")
    if not sign or not first or not second:
        raise UsageError(f"{option} '{text}' is not a pair", hint=f"write {option} FIRST=SECOND")
    return first, second


def _seeds(text: str) -> list[int]:
    try:
        seeds = [int(part) for part in text.split(",")]
    except ValueError:
        raise UsageError(f"seeds '{text}' are not understood", hint="write 42,43,44") from None
    return list(dict.fromkeys(seeds))


def _print(report: CkaReport) -> None:
    from rich.table import Table

    noisy = bool(report.noise)
    typer.echo(f"Divergence (1 - CKA) of {report.pair[0]} and {report.pair[1]} in percent")
    table = Table(box=None)
    table.add_column("layer")
    for name in ("biased", "debiased"):
        table.add_column(name, justify="right", no_wrap=True)
        if noisy:
            table.add_column(f"noise ({name})", justify="right", no_wrap=True)
            table.add_column(f"ratio ({name})", justify="right", no_wrap=True)
    for where in dict.fromkeys(line.where for line in report.lines):
        cells = [where]
        for name in ("biased", "debiased"):
            line = report.of(where, name)
            cells.append(span(line.divergence, 100))
            if noisy:
                cells += [span(line.noise, 100), span(line.ratio, 1)]
        table.add_row(*cells)
    console = analyze_runs.wide_console()
    console.print(table)
    if report.series:
        console.print("Along the series (debiased divergence in percent)", highlight=False)
        later = Table(box=None)
        later.add_column("pair", overflow="fold")
        for name in ("low", "mid", "late", "all"):
            later.add_column(name, justify="right", no_wrap=True)
        for pair, lines in [*((p.pair, p.lines) for p in report.series), (report.pair, report.lines)]:
            debiased = {line.where: line for line in lines if line.estimator == "debiased"}
            later.add_row(
                " : ".join(pair),
                *(span(debiased[g].divergence if g in debiased else None, 100) for g in ("low", "mid", "late", "all")),
            )
        console.print(later)
    drawn = next(line for line in report.lines if line.where == "all" and line.estimator == "debiased").seeds
    each = ", ".join(f"{seed}: {100 * value:.2f}" for seed, value in drawn.items())
    console.print(f"debiased divergence of all layers by drawing of {report.per_seed} texts: {each}", highlight=False)
    console.print(
        f"{report.texts} texts in all, {report.tokens} tokens; brackets: 95% jackknife intervals over texts",
        highlight=False,
    )
    for note in report.notes:
        console.print(note, highlight=False)


def span(value: Value | Any | None, scale: float) -> str:
    """A value with its interval; a dash where there is none."""
    if value is None:
        return "–"
    return f"{scale * value.value:.2f} [{scale * value.low:.2f}, {scale * value.high:.2f}]"
