"""`biobench analyze`: the mechanism tools on any pair of checkpoints, and the overlap of a corpus
with the tasks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypeVar

import typer

from biobench.cli.console.arguments import DataDir, Device, Json, ResultsDir, Tasks, Threads
from biobench.cli.console.options import takes_request
from biobench.cli.console.output import answer, percent, table, with_interval
from biobench.errors import UsageError
from biobench.runs.options import RunRequest
from biobench.schema.protocols import FROZEN

if TYPE_CHECKING:
    from biobench.stats import MeanTest
    from biobench.workflows.mechanism import PairedReport, RateSpread
    from trainer.analysis.cka import CkaReport, Value
    from trainer.analysis.transplant import Part, Transplant

T = TypeVar("T")
_SCORING = {"tasks", "seeds", "overrides", "limit", "data_dir", "results_dir", "device", "threads"}
scored_by = partial(takes_request, only=_SCORING)
"""Gives a command the options of `run` that say what models are scored on."""
analyze = typer.Typer(
    no_args_is_help=True,
    help="Why it works: similarity of states, transplants, freezing, stability.",
)


@analyze.command()
def cka(
    first: str,
    second: str,
    *,
    texts: str,
    noise: tuple[str, str] | None = None,
    n: Annotated[int, typer.Option(min=5)] = 500,
    seeds: str = "42,43,44",
    max_length: Annotated[int, typer.Option(min=8)] = 512,
    device: Device = "auto",
    threads: Threads = None,
    as_json: Json = False,
) -> None:
    """Divergence (1 - CKA) of two checkpoints' states, layer by layer, compared with seed noise.

    first (A): Folder or hub id of a checkpoint.
    second (B): Another.
    texts: Held-out texts: file, folder, hub:ID, or embedded.
    noise (C D): Two that differ by the training seed alone.
    n: Texts in each drawing.
    seeds: Seeds of the drawings.
    max_length: Longest text in tokens.
    """
    from biobench.models.loading import quiet_libraries
    from biobench.schema.task import parse_seeds
    from trainer.analysis.cka import compare
    from trainer.analysis.states import sample

    quiet_libraries()
    drawings = _read("seeds", seeds, parse_seeds, "42,43,44")
    report = compare(
        first,
        second,
        lambda: sample(texts, n, drawings),
        noise=noise,
        max_length=max_length,
        device=device,
        notify=lambda line: typer.echo(line, err=True),
    )
    answer(as_json, report.as_json(), _cka_lines(report))


@analyze.command()
@scored_by
def transplant(
    request: RunRequest,
    recipient: str,
    donor: str,
    *,
    out: str,
    layers: list[str] = [],  # noqa: B006
    modules: Literal["attention", "mlp"] | None = None,
    probe: bool = False,
    as_json: Json = False,
) -> None:
    """Copy B's layers, or parts of them, into A; with --task, score A, B and the hybrids.

    recipient (A): Folder of the checkpoint that receives.
    donor (B): Folder of the checkpoint that gives.
    out: Folder of the hybrid; of several, each in a folder below.
    layers: 0-7, 0,2,8-14, all or none; repeatable.
    modules: Only these parts.
    probe: Score by a linear probe, not by fine-tuning.
    """
    if probe and not request.tasks:
        raise UsageError(
            "nothing is scored without a task", hint="add --task ID, or leave out --probe"
        )
    from biobench.models.loading import quiet_libraries
    from biobench.workflows.mechanism import check_runs, paired_report

    quiet_libraries()
    layers_by_name = {}
    for text in layers or ["all"]:
        example = "0-7, 0,2,8-14, all or none"
        layers_by_name[text] = _read("layers", text, _chosen_layers, example)
    if probe:
        request = replace(request, overrides=(*FROZEN, *request.overrides))
    if request.tasks:
        check_runs([recipient, donor], request)
    copies = _hybrids(recipient, donor, Path(out), layers_by_name, modules)
    lines = [_copied_line(copy, donor) for copy in copies]
    report = None
    if request.tasks:
        models = [recipient, donor, *(str(copy.folder) for copy in copies)]
        scores = _scored(models, request)
        twin, reference, *_ = scores
        roles = ("donor", "recipient", "hybrid")
        report = paired_report(scores, reference=reference, twin=twin, roles=roles)
        lines += _paired_lines(report, "recovered")
    if probe:
        lines.append(
            "by a linear probe on frozen states: seeds differ by the probe's start and order alone"
        )
    data = {
        "hybrids": [{"folder": str(copy.folder), **copy.note} for copy in copies],
        "by": "linear probe" if probe else "fine-tuning",
        "scores": report,
    }
    answer(as_json, data, lines)


def _chosen_layers(text: str) -> list[int] | None:
    """The layers of a text such as 0-7; None for all of them. Raises ValueError."""
    from trainer.recipe.phases import parse_layers

    if text == "all":
        return None
    return [] if text == "none" else parse_layers(text)


def _hybrids(
    recipient: str,
    donor: str,
    out: Path,
    layers_by_name: dict[str, list[int] | None],
    modules: Part | None,
) -> list[Transplant]:
    """A checkpoint for each choice of layers: the folder itself where there is one choice."""
    from trainer.analysis.transplant import transplant as make

    parts: tuple[Part, ...] = ("attention", "mlp") if modules is None else (modules,)
    copies = []
    for name, layers in layers_by_name.items():
        folder = out
        if len(layers_by_name) > 1:
            folder = out / f"layers-{name.replace(',', '_')}"
        copies.append(make(recipient, donor, folder, layers=layers, parts=parts))
    return copies


def _copied_line(copy: Transplant, donor: str) -> str:
    line = f"{copy.folder}: {copy.copied:,} of {copy.total:,} parameters are {donor}'s"
    if copy.rest:
        line += ", embeddings, final norm and head too"
    return line


@analyze.command()
def freeze_report(
    runs: list[str],
    task: Tasks = [],  # noqa: B006
    results_dir: ResultsDir = "results",
    as_json: Json = False,
) -> None:
    """The detour, its twin and runs with frozen layers, side by side with paired intervals.

    runs (REFERENCE TWIN FROZEN...): Folders, or names.
    """
    from biobench.workflows.mechanism import frozen_layers, paired_report, stored_scores

    if len(runs) < 3:
        raise UsageError(
            "a reference, its twin and one frozen run or more are needed", hint="give three models"
        )
    scores = stored_scores(runs, results_dir, task)
    names = list(scores)
    frozen = {name: frozen_layers(run) for name, run in zip(names, runs, strict=True)}
    report = paired_report(scores, reference=names[0], twin=names[1], frozen=frozen)
    answer(as_json, report, _paired_lines(report, "kept"))


@analyze.command()
@scored_by
def stability(
    request: RunRequest,
    models: list[str],
    *,
    learning_rates: str,
    as_json: Json = False,
) -> None:
    """Spread of scores over fine-tuning learning rates.

    models (MODEL...): Hub id or folder.
    learning_rates: Fine-tuning rates, e.g. 1e-5,2e-5,5e-5,1e-4.
    """
    from biobench.models.loading import quiet_libraries
    from biobench.workflows.mechanism import check_runs
    from biobench.workflows.mechanism import stability as summarise

    rates = _read("learning rates", learning_rates, _distinct_numbers, "1e-5,2e-5,5e-5")
    if not request.tasks:
        raise UsageError("nothing is scored without a task", hint="add --task ID")
    if len(rates) < 2:
        raise UsageError(
            "one learning rate has no spread", hint="give --learning-rates two values or more"
        )
    quiet_libraries()
    at_rate = {}
    for rate in rates:
        overrides = (*request.overrides, f"training.learning_rate={rate!r}")
        at_rate[rate] = replace(request, overrides=overrides)
        check_runs(models, at_rate[rate])
    scores = {rate: _scored(models, changed) for rate, changed in at_rate.items()}
    tasks, seeds, spreads = summarise(scores)
    data = {"tasks": tasks, "seeds": seeds, "spreads": spreads}
    answer(as_json, data, _spread_lines(tasks, seeds, spreads))


def _distinct_numbers(text: str) -> list[float]:
    """Numbers between commas, each once. Raises ValueError."""
    return list(dict.fromkeys(map(float, text.split(","))))


@analyze.command()
def overlap(
    corpus: Path,
    *,
    task: Tasks = [],  # noqa: B006
    model: str | None = None,
    data_dir: DataDir = None,
    results_dir: ResultsDir = "results",
    as_json: Json = False,
) -> None:
    """Exact and 13-gram overlap of training text with each task's validation and test documents.

    Where the model is known, the result is kept in --results-dir, in its records and in those of
    later runs.

    corpus: Text, or a pretraining run or its ledger.
    model: Model trained on it; a run names its own.
    """
    from biobench.workflows.overlap import measure

    rows, measured, noted = measure(corpus, task, model, data_dir, results_dir)
    data, lines = [], []
    for (name, split), row in rows.items():
        share, excluded = row.ngrams_seen / max(row.ngrams, 1), measured[name].excluded
        data.append(
            {"task": name, "split": split, **row.model_dump(), "share": share, "excluded": excluded}
        )
        line = (
            f"{name} {split}: {row.exact} of {row.documents} documents verbatim, "
            f"{row.touched} share a 13-gram, {row.ngrams_seen} of {row.ngrams} 13-grams seen "
            f"({row.short} documents too short to tell)"
        )
        if excluded:
            line += "; the corpus excludes all of them"
        lines.append(line)
    answer(as_json, data, lines)
    if noted is not None:
        typer.echo(
            f"kept in {Path(results_dir) / 'overlap'}, {noted[1]} stored runs of {noted[0]} noted",
            err=True,
        )


def _read(option: str, text: str, parse: Callable[[str], T], example: str) -> T:
    """The option's text as `parse` reads it. Raises UsageError where it cannot."""
    try:
        return parse(text)
    except ValueError:
        raise UsageError(f"{option} '{text}' are not understood", hint=f"write {example}") from None


def _scored(models: Sequence[str], request: RunRequest) -> dict[str, dict[str, dict[int, float]]]:
    """The scores of models on what `how` says; runs are reported on the terminal."""
    from biobench.cli.console.progress import RunTerminal
    from biobench.workflows.mechanism import run_scores

    with RunTerminal() as reporter:
        return run_scores(models, request, reporter)


def _cka_lines(report: CkaReport) -> Iterator[str]:
    """The table of layers, with the estimators side by side, and what it is over."""
    kinds = ("divergence", "noise", "ratio") if report.noise else ("divergence",)
    columns = [(estimator, kind) for estimator in ("biased", "debiased") for kind in kinds]
    head = ["layer"]
    for estimator, kind in columns:
        head.append(estimator if kind == "divergence" else f"{kind} ({estimator})")

    def cell(layer: str, estimator: str, kind: str) -> str:
        value: Value | None = getattr(report.of(layer, estimator), kind)
        if value is None:
            return "–"
        return with_interval(value.value, value, scale=1 if kind == "ratio" else 100)

    yield f"Divergence (1 - CKA) of {report.pair[0]} and {report.pair[1]} in percent"
    layers = dict.fromkeys(line.where for line in report.lines)
    yield table(head, [[where, *(cell(where, *column) for column in columns)] for where in layers])
    drawn = ", ".join(
        f"{seed}: {100 * value:.2f}" for seed, value in report.of("all", "debiased").seeds.items()
    )
    yield f"debiased divergence of all layers by drawing of {report.per_seed} texts: {drawn}"
    yield (
        f"{report.texts} texts in all, {report.tokens} tokens; brackets: 95% jackknife "
        f"intervals over texts"
    )
    yield from report.notes


def _paired_lines(report: PairedReport, share: str) -> Iterator[str]:
    """The table of a freeze report or of transplants; scores and differences in percent and
    points."""
    rows, notes = [], []
    for row in report.rows:
        share_kept = "–"
        if row.kept is not None:
            share_kept = with_interval(row.kept.value, row.kept.interval)
            if row.kept.note:
                share_kept += " [?]"
                notes.append(f"{share} [?]: {row.kept.note}")
        tests = (*_test(row.to_twin), *_test(row.to_reference))
        rows.append((row.model, row.frozen or row.role, percent(row.mean), *tests, share_kept))
    yield table(
        ("model", "role", "mean", f"to {report.twin}", "p", f"to {report.reference}", "p", share),
        rows,
    )
    yield (
        f"{', '.join(report.tasks)}; seeds {', '.join(map(str, report.seeds))}; 95% intervals "
        f"over other seeds, these tasks and test sets; p values are not corrected for the number "
        f"of rows"
    )
    yield from dict.fromkeys(notes)


def _spread_lines(
    tasks: Sequence[str], seeds: Sequence[int], spreads: Sequence[RateSpread]
) -> Iterator[str]:
    """The table of models by learning rate; scores and spreads in points."""
    rates = [f"{rate:g}" for rate in spreads[0].by_rate]
    head = ("model", *rates, "best rate", "range", "sd over rates", "to first")
    rows = []
    for model in spreads:
        spread = with_interval(model.test.estimate, model.test.interval)
        to_first = "–" if model.to_first is None else " p ".join(_test(model.to_first))
        scores = map(percent, model.by_rate.values())
        best_rate = f"{model.best_rate:g}"
        rows.append((model.model, *scores, best_rate, percent(model.range), spread, to_first))
    yield table(head, rows)
    yield (
        f"{', '.join(tasks)}; seeds {', '.join(map(str, seeds))}; points; sd over rates: within "
        f"each seed and task, then the mean; 95% intervals over other seeds"
    )


def _test(test: MeanTest | None) -> tuple[str, str]:
    """A difference in points with its interval, and its p; dashes where there is none."""
    if test is None:
        return "–", "–"
    difference = with_interval(test.estimate, test.interval, "+")
    return difference, "–" if test.p is None else f"{test.p:.3f}"
