"""`biobench errors`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, get_args

import typer

from biobench.cli.console.arguments import (
    DataDir,
    IncludeAgreement,
    Json,
    SliceName,
    StoredResults,
    check_known,
)
from biobench.cli.console.output import answer, write_output


def errors(
    model: str,
    *,
    task: str,
    seed: int | None = None,
    kind: list[str] = [],  # noqa: B006
    label: str | None = None,
    slice_: SliceName = None,
    documents: Annotated[int, typer.Option(min=0)] = 10,
    html: Path | None = None,
    include_agreement: IncludeAgreement = False,
    data_dir: DataDir = None,
    results_dir: StoredResults = "results",
    as_json: Json = False,
) -> None:
    """What a run missed or said falsely, in context; the confusion table of single labels.

    model: A model of the results folder.
    task (ID_OR_YAML): Its task: an id, or a YAML file.
    seed: Of this seed (default: the first stored).
    kind: missed, spurious (false), label, boundary or both; repeatable.
    label: Only mentions or documents of this label.
    documents: Number of documents to print.
    html: Write one page with all of them to this file.
    """
    from biobench.reporting.details.mistake_forms import as_data, as_page, as_text
    from biobench.reporting.details.mistaken import read_mistakes
    from biobench.reporting.details.mistakes import KINDS, Kind
    from biobench.reporting.results import load

    check_known(kind, get_args(Kind), "--kind")
    kinds = KINDS[:-1]
    if kind:
        kinds = tuple(k for k in KINDS if k in kind)
    mistakes = read_mistakes(
        load(results_dir),
        model,
        task,
        seed=seed,
        data_dir=data_dir,
        slice=slice_,
        label=label,
        include_agreement=include_agreement,
    )
    if html is not None:
        write_output(html, as_page(mistakes, kinds, label))
        text = f"{html}: written"
    else:
        text = as_text(mistakes, kinds, label, documents).rstrip("\n")
    answer(as_json, as_data(mistakes, kinds, label), [text])
