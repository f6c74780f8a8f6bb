"""A model's results as metadata for elsewhere: the hub's model card and result files, Every Eval
Ever, BibTeX.

Formats as of huggingface_hub 2.4 (`model-index`, `.eval_results/*.yaml`) and Every Eval Ever 0.3.0.
Only full runs on the shipped or named specs are exported; limited and overridden ones never are.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal, get_args

import yaml
from huggingface_hub import EvalResult, EvalResultEntry, ModelCardData, eval_result_entries_to_yaml

from biobench.errors import UsageError
from biobench.export.bibtex import bibtex
from biobench.export.every_eval_ever import every_eval_ever
from biobench.export.push import REPOSITORY
from biobench.export.results import AVERAGES, TaskResult, model_results
from biobench.export.samples import samples
from biobench.reporting.escape import for_markdown, plain
from biobench.reporting.results import load
from biobench.reporting.row import METRICS, Row, in_percent
from biobench.reporting.sheets import percent
from biobench.schema.kind import get_metric, traits_of
from biobench.schema.strict import suggest
from biobench.version import __version__

Format = Literal[
    "model-card",
    "eval-results",
    "eval-yaml",
    "every-eval-ever",
    "every-eval-ever-samples",
    "bibtex",
]
FORMATS: tuple[Format, ...] = get_args(Format)


def export(
    model: str, format: str, results_dir: str | Path = "results", *, dataset: str | None = None
) -> str:
    """The results of one of the folder's models, as text.

    model-card: YAML head with a `model-index`, and a table, to be put into a README.md.
    eval-results: a file for `.eval_results/`; dataset: the benchmark's dataset repository on the
    hub, without which each task's own is named. eval-yaml: `eval.yaml` of such a repository, with
    the tasks of the model. every-eval-ever: JSON; every-eval-ever-samples: its JSON lines, one a
    run and test document, without texts. bibtex: the works that the tasks cite.
    Raises UsageError for an unknown model or format.
    """
    if format not in FORMATS:
        raise UsageError(f"unknown format '{plain(format)}'", hint=suggest(format, list(FORMATS)))
    if dataset is not None and not REPOSITORY.fullmatch(dataset):
        raise UsageError(
            f"'{plain(dataset)}' is not a dataset repository",
            hint="write --dataset ORGANISATION/NAME",
        )
    of_model = model_results(load(results_dir), model)
    name = of_model[0].group.model
    if format == "bibtex":
        return bibtex(result.info for result in of_model)
    if format == "every-eval-ever":
        return every_eval_ever(name, of_model)
    if format == "every-eval-ever-samples":
        return samples(of_model)
    if format == "eval-yaml":
        return _eval_yaml(of_model)
    if format == "model-card":
        return _model_card(name, of_model)
    return _eval_results(of_model, dataset)


def _eval_yaml(results: Sequence[TaskResult]) -> str:
    """What the page of a benchmark's dataset repository needs; the ids are those of result
    files."""
    tasks = []
    for result in results:
        tasks.append({"id": result.info.id, "config": result.info.id, "split": "test"})
    declared = {
        "name": "BioBench",
        "description": "Biomedical encoders, fine-tuned over several seeds.",
        "evaluation_framework": "biobench",
        "tasks": tasks,
    }
    head = (
        "# eval.yaml of the benchmark's dataset repository, with a configuration a task. The hub "
        "lists it on request,\n"
        "# once it knows the evaluation framework.\n"
    )
    return head + yaml.safe_dump(declared, sort_keys=False, allow_unicode=True, width=1_000)


def _model_card(model: str, results: Sequence[TaskResult]) -> str:
    entries = []
    for result in results:
        is_tagging = traits_of(result.info.type).spans
        for row in result.rows:
            is_f1 = "f1" in row.metric.split("_")
            entries.append(
                EvalResult(
                    task_type="token-classification" if is_tagging else "text-classification",
                    task_name=plain(result.info.name),
                    dataset_type=result.hub_repo or result.info.id,
                    dataset_name=plain(result.info.name),
                    dataset_split="test",
                    metric_type="f1" if is_f1 else row.metric,
                    metric_name=f"{get_metric(row.metric).words} ({seeds_words(row)})",
                    metric_value=round(row.mean, 6),
                )
            )
    data = ModelCardData(
        language=sorted({result.info.language for result in results} - {""}),
        model_name=plain(model),
        eval_results=entries,
        tags=["biobench"],
    )
    averages = " | ".join(get_metric(METRICS[average]).words for average in AVERAGES)
    lines = [
        "---",
        data.to_yaml(),
        "---",
        "",
        f"## Results with BioBench {__version__}",
        "",
        "Percent; ± is half the 95% t interval over seeds, missing where there is one seed or all "
        "gave the same score.",
        "",
        f"| task | seeds | published average | {averages} |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    lines += map(_table_line, results)
    return "\n".join(lines) + "\n"


def _table_line(result: TaskResult) -> str:
    """The row of the card's table, with the published average named."""
    published = result.rows[0]
    guess = ", not above guessing" if published.guessing else ""
    cells = [
        for_markdown(result.info.name),
        str(published.n_seeds),
        f"{get_metric(published.metric).words} {percent(published)}{guess}",
    ]
    for average in AVERAGES:
        cells.append(percent(result.row_of(METRICS[average])))
    return f"| {' | '.join(cells)} |"


def _eval_results(results: Sequence[TaskResult], dataset: str | None) -> str:
    entries = []
    for result in results:
        record = result.group.records[0]
        row = result.rows[0]
        repository = dataset or result.hub_repo
        if repository is None:
            raise UsageError(
                f"the data of {result.info.id} are in no dataset repository of the hub",
                hint="name the benchmark's with --dataset ORGANISATION/NAME",
            )
        score = f"{get_metric(row.metric).words}, {seeds_words(row)}"
        if row.low is not None and row.high is not None:
            score += f", 95% {in_percent(row.low)} to {in_percent(row.high)}"
        macro = result.row_of("macro_f1")
        if macro is not None and macro is not row:
            score += f"; {get_metric('macro_f1').words} {in_percent(macro.mean)}"
        entries.append(
            EvalResultEntry(
                dataset_id=repository,
                task_id=result.info.id,
                value=round(100 * row.mean, 2),
                date=result.date[:10],
                notes=(
                    f"{score}; BioBench {record.provenance.biobench}, "
                    f"task version {record.task.version}"
                ),
            )
        )
    head = (
        "# For .eval_results/ in the model's repository. The hub shows it where the dataset below "
        "is registered as a\n"
        "# benchmark that lists these task ids.\n"
    )
    return head + yaml.safe_dump(
        eval_result_entries_to_yaml(entries), sort_keys=False, allow_unicode=True, width=1_000
    )


def seeds_words(row: Row) -> str:
    """``mean of 9 seeds``, and whether that is not above guessing."""
    seeds = "one seed" if row.n_seeds == 1 else f"mean of {row.n_seeds} seeds"
    return f"{seeds}, not above guessing" if row.guessing else seeds
