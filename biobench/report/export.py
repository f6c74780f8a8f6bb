"""A model's results as metadata for elsewhere: the hub's model card and result files, Every Eval Ever, BibTeX.

Formats as of huggingface_hub 2 (`model-index`, `.eval_results/*.yaml`) and Every Eval Ever 0.2.1. Only full
runs on the shipped or named specs are exported; limited and overridden ones never are.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, get_args

import yaml
from huggingface_hub import EvalResult, EvalResultEntry, ModelCardData, eval_result_entries_to_yaml

import biobench
from biobench.errors import UsageError
from biobench.report.beside import NAMES
from biobench.report.escape import for_markdown, plain
from biobench.report.groups import RunGroup
from biobench.report.rows import METRICS, AverageName, Row
from biobench.report.table import Results, build, load
from biobench.report.tasks import TaskInfo
from biobench.report.wide import percent
from biobench.schema.strict import suggest
from biobench.schema.task import NER_TYPES

Format = Literal["model-card", "eval-results", "every-eval-ever", "bibtex"]
FORMATS: tuple[Format, ...] = get_args(Format)
EVERY_EVAL_EVER = "0.2.1"
"""Version of the schema that the export follows."""
_AVERAGES: tuple[AverageName, ...] = ("macro", "micro", "weighted")


@dataclass(frozen=True, slots=True)
class Result:
    """One model on one task: its row for each average, in the order macro, micro, weighted."""

    info: TaskInfo
    group: RunGroup
    rows: tuple[Row, ...]

    @property
    def date(self) -> str:
        """When the last of the runs was started, ISO 8601."""
        return max(r.provenance.started for r in self.group.records)

    @property
    def hub_repo(self) -> str | None:
        """The dataset repository of the source that the runs read, None where it is on no hub."""
        if self.info.spec is None:
            return None
        used = {r.task.source for r in self.group.records}
        repos = {s.hub.repo for s in self.info.spec.all_sources if s.id in used and s.hub is not None}
        return repos.pop() if len(repos) == 1 else None


def export(model: str, format: str, results_dir: str | Path = "results", *, dataset: str | None = None) -> str:
    """The results of one of the folder's models, as text.

    model-card: YAML head with a `model-index`, and a table, to be put into a README.md. eval-results: a file
    for `.eval_results/`; dataset: the benchmark's dataset repository on the hub, without which only tasks
    read from a hub dataset can be named. every-eval-ever: JSON. bibtex: the tasks' citations.
    Raises UsageError for an unknown model or format.
    """
    if format not in FORMATS:
        raise UsageError(f"unknown format '{format}'", hint=suggest(format, list(FORMATS)))
    held = load(results_dir)
    found = model_results(held, model)
    if format == "eval-results":
        return _eval_results(found, dataset)
    writers: dict[str, Callable[[str, Sequence[Result]], str]] = {
        "model-card": _model_card,
        "every-eval-ever": _every_eval_ever,
        "bibtex": _bibtex,
    }
    return writers[format](found[0].group.model, found)


def model_results(held: Results, model: str) -> list[Result]:
    """The full runs of a model (its name, name@revision or folder), in the order of the catalogue."""
    names = sorted({g.model for g in held.groups if g.source == "run" and not g.variant})
    wanted = [n for n in names if n == model] or [n for n in names if n == Path(model).name]
    if not wanted:
        partly = {g.model for g in held.groups} & {model, Path(model).name}
        what = "has only limited or overridden runs" if partly else "has no runs here"
        raise UsageError(f"'{plain(model)}' {what}", hint=suggest(model, names))
    groups = {g.task: g for g in held.groups if g.model == wanted[0] and g.source == "run" and not g.variant}
    rows: dict[str, list[Row]] = {}
    for average in _AVERAGES:
        for row in build(held, average, models=wanted, sources=["run"]).rows:
            if not row.variant:
                rows.setdefault(row.task, []).append(row)
    return [
        Result(info, groups[task], tuple(rows[task]))
        for task, info in held.infos.items()
        if task in groups and len(rows.get(task, ())) == len(_AVERAGES)
    ]


def _model_card(model: str, results: Sequence[Result]) -> str:
    entries = []
    for result in results:
        for row in result.rows:
            entries.append(
                EvalResult(
                    task_type="token-classification" if result.info.type in NER_TYPES else "text-classification",
                    task_name=plain(result.info.name),
                    dataset_type=result.hub_repo or result.info.id,
                    dataset_name=plain(result.info.name),
                    dataset_split="test",
                    metric_type="f1",
                    metric_name=f"{NAMES[row.metric]} ({_seeds(row)})",
                    metric_value=round(row.mean, 6),
                )
            )
    languages = sorted({r.info.language for r in results})
    data = ModelCardData(language=languages, model_name=plain(model), eval_results=entries, tags=["biobench"])
    lines = [
        "---",
        data.to_yaml(),
        "---",
        "",
        f"## Results with BioBench {biobench.__version__}",
        "",
        "Percent; ± is half the 95% t interval over seeds.",
        "",
        "| task | seeds | " + " | ".join(NAMES[METRICS[a]] for a in _AVERAGES) + " |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    for result in results:
        cells = " | ".join(percent(row) for row in result.rows)
        lines.append(f"| {for_markdown(result.info.name)} | {result.rows[0].n_seeds} | {cells} |")
    return "\n".join(lines) + "\n"


def _eval_results(results: Sequence[Result], dataset: str | None) -> str:
    entries, left_out = [], []
    for result in results:
        repo = dataset or result.hub_repo
        if repo is None:
            left_out.append(result.info.id)
            continue
        record, row = result.group.records[0], result.rows[0]
        interval = "" if row.low is None or row.high is None else f", 95% {100 * row.low:.1f} to {100 * row.high:.1f}"
        entries.append(
            EvalResultEntry(
                dataset_id=repo,
                task_id=result.info.id,
                value=round(100 * row.mean, 2),
                date=result.date[:10],
                notes=(
                    f"{NAMES[row.metric]}, {_seeds(row)}{interval}; BioBench {record.provenance.biobench}, "
                    f"task version {record.task.version}"
                ),
            )
        )
    if not entries:
        raise UsageError(
            "none of these tasks is read from a dataset on the hub, and the file must name one",
            hint="give the benchmark's dataset repository: --dataset ORGANISATION/NAME",
        )
    head = f"# not in this file, read from elsewhere than the hub: {', '.join(left_out)}\n" if left_out else ""
    return head + yaml.safe_dump(eval_result_entries_to_yaml(entries), sort_keys=False, allow_unicode=True)


def _every_eval_ever(model: str, results: Sequence[Result]) -> str:
    stamp = max(r.date for r in results)
    seconds = str(int(datetime.fromisoformat(stamp).timestamp()))
    identity = results[0].group.records[0].model
    owner, slash, _ = identity.id.partition("/")
    document: dict[str, Any] = {
        "schema_version": EVERY_EVAL_EVER,
        "evaluation_id": f"biobench/{identity.id}/{seconds}",
        "evaluation_timestamp": stamp,
        "retrieved_timestamp": seconds,
        "source_metadata": {
            "source_name": "BioBench",
            "source_type": "evaluation_run",
            "source_organization_name": "unknown",
            "evaluator_relationship": "other",
        },
        "eval_library": {"name": "biobench", "version": results[0].group.records[-1].provenance.biobench},
        "model_info": {
            "name": model,
            "id": identity.id,
            **({"developer": owner} if slash else {}),
            "additional_details": {
                "weights_hash": identity.hash,
                "architecture": identity.architecture,
                "parameters": str(identity.parameters),
                **({"revision": identity.revision} if identity.revision else {}),
            },
        },
        "evaluation_results": [_result(result, row) for result in results for row in result.rows],
    }
    return json.dumps(document, ensure_ascii=False, indent=2, allow_nan=False) + "\n"


def _result(result: Result, row: Row) -> dict[str, Any]:
    record = result.group.records[0]
    details: dict[str, Any] = {"score": row.mean}
    uncertainty: dict[str, Any] = {"num_samples": row.n_seeds}
    if row.sd is not None and row.low is not None and row.high is not None:
        uncertainty |= {
            "standard_deviation": row.sd,
            "standard_error": {"value": row.sd / math.sqrt(row.n_seeds), "method": "over fine-tuning seeds"},
            "confidence_interval": {
                "lower": row.low,
                "upper": row.high,
                "confidence_level": 0.95,
                "method": "Student t over fine-tuning seeds",
            },
        }
    details["uncertainty"] = uncertainty
    details["details"] = {
        "seeds": ",".join(map(str, row.seeds)),
        "scores": ",".join(repr(v) for v in row.values),
        "task_version": str(record.task.version),
        "task_hash": record.task.hash,
        "data_hash": record.task.data_hash,
        "truncated_documents": str(row.truncated_documents),
        "lost_gold": str(row.lost_gold),
    }
    return {
        "evaluation_name": f"{result.info.id}/{row.metric}",
        "source_data": _source(result),
        "evaluation_timestamp": result.date,
        "metric_config": {
            "evaluation_description": f"{NAMES[row.metric]} of the fine-tuned encoder on {result.info.name}",
            "lower_is_better": False,
            "score_type": "continuous",
            "min_score": 0.0,
            "max_score": 1.0,
        },
        "score_details": details,
    }


def _source(result: Result) -> dict[str, Any]:
    name, documents = result.info.name, result.group.records[0].task.test_documents
    if result.hub_repo is not None:
        return {
            "dataset_name": name,
            "source_type": "hf_dataset",
            "hf_repo": result.hub_repo,
            "hf_split": "test",
            "samples_number": documents,
        }
    spec = result.info.spec
    if spec is not None and spec.homepage.startswith(("https://", "http://")):
        return {"dataset_name": name, "source_type": "url", "url": [spec.homepage]}
    return {"dataset_name": name, "source_type": "other"}


def _bibtex(model: str, results: Sequence[Result]) -> str:
    del model
    entries = []
    for result in results:
        spec = result.info.spec
        if spec is None:
            continue
        entries.append(
            f"@misc{{biobench_{spec.id},\n  title = {{{_braced(spec.name)}}},\n"
            f"  note = {{{_braced(spec.citation)}}},\n  url = {{{_braced(spec.homepage)}}},\n}}\n"
        )
    return "\n".join(entries)


def _braced(text: str) -> str:
    """Text inside a braced BibTeX field."""
    kept = " ".join(text.split()).replace("\\", "").replace("{", "").replace("}", "")
    return "".join(f"\\{c}" if c in "&%$#_" else c for c in kept)


def _seeds(row: Row) -> str:
    return "one seed" if row.n_seeds == 1 else f"mean of {row.n_seeds} seeds"
