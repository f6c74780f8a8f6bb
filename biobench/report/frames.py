"""A results folder from Python: tidy data frames, predictions, mistakes and charts. What `biobench.results` gives."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from biobench.errors import UsageError
from biobench.report.details.mistaken import Mistakes, as_data, read_mistakes
from biobench.report.details.mistakes import KINDS
from biobench.report.rows import AverageName, Report
from biobench.report.table import Results, build, first_average, load
from biobench.report.tidy import COLUMNS, tidy

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True)
class ResultsFolder:
    """Stored runs of a results folder. data_dir: where texts are looked for (None: the default data folder)."""

    results: Results
    data_dir: str | Path | None = None

    def to_dataframe(self, *, labels: bool = False) -> pd.DataFrame:
        """One row a run and metric; with `labels`, also one a run, label and metric (precision, recall, f1).

        Columns as in `report.tidy.COLUMNS`; `value` is a fraction (0-1). Published scores are not runs: `report`
        has them. Warns of runs that are left out because their task fails its gate.
        """
        import warnings

        import pandas as pd

        for task in sorted({refusal.group.task for refusal in self.results.refusals}):
            reasons = next(r.reasons for r in self.results.refusals if r.group.task == task)
            warnings.warn(f"runs of {task} are left out, the task fails its gate: {'; '.join(reasons)}", stacklevel=2)
        return pd.DataFrame(tidy(self.results, labels=labels), columns=list(COLUMNS))

    def report(self, average: AverageName | None = None, **filters: Any) -> Report:
        """The rows of the report; filters as of `report.table.build`."""
        return build(self.results, average or first_average(self.results), **filters)

    def predictions(self, model: str, task: str, *, seed: int | None = None) -> pd.DataFrame:
        """One row a test document of one run: document, text, gold and said (lists), wrong (number of mistakes).

        gold, said: labels, or (start, end, label) of mentions. text: None where the data is not at hand or under an
        agreement. Raises as `report.mistaken.read_mistakes`.
        """
        import pandas as pd

        mistakes = self._mistakes(model, task, seed)
        rows = []
        for one in mistakes.judged:
            sides = {
                "gold": [m.gold for m in one.marks if m.gold is not None],
                "said": [m.predicted for m in one.marks if m.predicted is not None],
            }
            shown = {k: [tuple(s) if s.end else s.label for s in spans] for k, spans in sides.items()}
            text = mistakes.texts.get(one.document.id)
            rows.append({"document": one.document.id, "text": text, **shown, "wrong": one.wrong})
        return pd.DataFrame(rows, columns=["document", "text", "gold", "said", "wrong"])

    def errors(self, model: str, task: str, *, seed: int | None = None) -> pd.DataFrame:
        """One row a mistake of one run: its kind and both sides, as `biobench errors --json` prints them."""
        import pandas as pd

        columns = ["model", "task", "seed", "document", "kind"]
        columns += [f"{side}_{what}" for side in ("gold", "said") for what in ("label", "start", "end", "text")]
        return pd.DataFrame(as_data(self._mistakes(model, task, seed), KINDS[:-1], None), columns=columns)

    def plot(self, metric: str = "macro_f1") -> Any:
        """An Altair chart: per task and model a point a seed and the mean as a bar. Raises UsageError without runs."""
        import altair as alt

        frame = self.to_dataframe()
        frame = frame[(frame["metric"] == metric) & (frame["label"] == "")].copy()
        if frame.empty:
            raise UsageError(f"no stored run has '{metric}'", hint="run a model first, or name another metric")
        frame["line"] = [m if not v else f"{m} [{v}]" for m, v in zip(frame["model"], frame["variant"], strict=True)]
        frame["percent"] = 100 * frame["value"]
        base = alt.Chart(frame[["line", "task", "seed", "percent"]])
        y = alt.Y("line:N", title=None)
        points = base.mark_circle(opacity=0.7, size=45).encode(
            x=alt.X("percent:Q", title=f"{metric}, percent", scale=alt.Scale(zero=False)),
            y=y,
            tooltip=["line:N", "task:N", "seed:Q", alt.Tooltip("percent:Q", format=".1f")],
        )
        means = base.mark_tick(thickness=3, size=14, color="#E69F00").encode(x="mean(percent):Q", y=y)
        return alt.layer(points, means).facet(row=alt.Row("task:N", title=None)).resolve_scale(y="independent")

    def _mistakes(self, model: str, task: str, seed: int | None) -> Mistakes:
        return read_mistakes(self.results, model, task, seed=seed, data_dir=self.data_dir)


def results(results_dir: str | Path = "results", *, data_dir: str | Path | None = None) -> ResultsFolder:
    """The stored runs of a folder. Raises UsageError where there is no such folder."""
    if not Path(results_dir).is_dir():
        raise UsageError(f"there is no results folder '{results_dir}'", hint="name the folder that `run` wrote")
    return ResultsFolder(load(results_dir), data_dir)


def predictions(
    model: str,
    task: str,
    *,
    seed: int | None = None,
    results_dir: str | Path = "results",
    data_dir: str | Path | None = None,
) -> pd.DataFrame:
    """The predictions of one stored run; see `ResultsFolder.predictions`."""
    return results(results_dir, data_dir=data_dir).predictions(model, task, seed=seed)
