"""What the app says, by key."""

from __future__ import annotations

import re
from collections.abc import Mapping

from biobench.comparison.standing import WORDS as STANDING_WORDS
from biobench.report.charts import FEW_SEEDS
from biobench.report.literature.beside import NAMES
from biobench.report.rows import Row
from biobench.report.wide import percent
from leaderboard.launch import is_public
from leaderboard.view_words import VIEW_WORDS

_COMMAND = re.compile(r" ?;[^;]*`biobench [^`]*`[^;]*")
"""A part of a note that says what to run."""
_METRICS = {"macro_f1": "macro", "micro_f1": "micro", "weighted_f1": "weighted"}
_WORDS: dict[str, str] = {
    "title": "Biomedical encoder leaderboard",
    "board": "Leaderboard",
    "model_view": "Models",
    "task_view": "Tasks",
    "compare_view": "Compare",
    "suite": "Suite",
    "difference": "difference, points",
    "difference_help": (
        "Dot: difference on one task. Line: its interval over seeds and test sets where both are known, else over "
        "the one that is."
    ),
    "wins": "wins",
    "ties": "ties",
    "losses": "losses",
    "how_sure": "How sure?",
    "details": "All numbers",
    "cost": "Cost",
    "cost_parameters": "parameters",
    "cost_train_tokens_per_second": "tokens a second in training",
    "cost_seconds": "seconds a run",
    "cost_peak_memory_bytes": "peak memory, bytes",
    "cost_energy_kwh": "energy a run, kWh",
    "cost_unknown": "This cost is not known for what is shown here.",
    "cost_source": "cost is",
    "cost_measured": "measured",
    "cost_claimed": "claimed",
    "no_model": "There is no model to show yet.",
    "task": "task",
    "score": "score",
    "best": "best here",
    "gap": "behind the best",
    "metric": "average",
    "interval_head": "95%",
    "seconds": "seconds a run",
    "memory": "peak memory, GB",
    "cut": "documents cut",
    "lost": "gold lost",
    "revision": "revision",
    "architecture": "architecture",
    "parameters": "parameters",
    "weights": "weights hash",
    "window": "window, tokens",
    "window_short_head": "window",
    "speed_short_head": "tokens/s",
    "made_with": "made with",
    "published_only": "Published scores only: no runs, so no seeds, speed or memory.",
    "language": "language",
    "type": "type",
    "licence": "licence",
    "licence_unknown": "not recorded",
    "access": "access",
    "citation": "citation",
    "homepage": "homepage",
    "corpus": "corpus",
    "type_token_ner": "named entities, word by word",
    "type_span_ner": "named entities, span by span",
    "type_single_label": "classification, one label",
    "type_multi_label": "classification, several labels",
    "type_relation": "relations between entities",
    "type_text_pair": "pairs of texts",
    "type_regression": "a number for a text or a pair",
    "type_multiple_choice": "multiple choice",
    "type_synonyms": "synonyms",
    "type_needle": "needle in a haystack",
    "access_open": "open",
    "access_registration": "after registration",
    "access_agreement": "under an agreement",
    "not_shipped": "This task does not ship with BioBench; its records are all that is known of it.",
    "known_issues": "Known issues and choices",
    "deviations": "Deviations from the compared protocol",
    "here": "here",
    "there": "there",
    "distribution": "Scores",
    "readings": "Published numbers",
    "size_limit": "Size",
    "any_size": "any size",
    "below_100": "below 100 million",
    "below_200": "below 200 million",
    "filled_help": "Filled: runs, with the ranks that the pairs leave open.",
    "line_help": "Line: 95% interval over seeds.",
    "hollow_help": "Hollow: printed scores, in brackets their order.",
    "other_average": "Publications print scores of these tasks under another average: choose “{}” to see them.",
    "rank": "rank",
    "rank_short": (
        "From … to: the ranks that the pairs leave open. In brackets: the order of printed means, which says nothing "
        "of how sure it is."
    ),
    "printed_order": (
        "In brackets: the order of printed means, which come without seeds, so nothing says how sure it is."
    ),
    "rank_help": (
        "Ranks: a model loses one to each model that is ahead of it by more than other seeds explain, pair by pair at "
        "95%, as Compare shows it; among the {} with the best means. Other tasks are another question: see Compare."
    ),
    "mean": "mean",
    "margin_help": "Half the 95% interval of the mean over seeds; none below three seeds.",
    "marks_help": (
        "▽ below what a policy reaches that reads nothing; ✂ documents longer than the window; ✗ failed runs, which "
        "the mean includes and ± does not; † test documents in the training text; ‡ average likely, not stated; § the "
        "mean is the publication's own."
    ),
    "notes_in_words": "notes in words",
    "below_floor": "below the floor on {}",
    "cut_on": "cut at the window: {}",
    "failed_on": "failed runs in the mean: {}",
    "failed_count": "{} failed",
    "in_training": "test documents in its training text",
    "only_likely": "average likely, not stated",
    "no_cost": "Costs are known of runs alone.",
    "alt_standing": "Models by mean score with intervals; the first: {}",
    "alt_scatter": "Score of each model against {}; the front: {}",
    "alt_differences": "Difference on each task with its interval; the ends: {}",
    "last_run": "last run",
    "average": "Average",
    "macro": "Macro F1",
    "micro": "Micro F1",
    "weighted": "Weighted F1",
    "paper": "As published",
    "fr": "French",
    "en": "English",
    "needle": "Needle in a haystack",
    "sources": "Sources",
    "run": "own runs",
    "published": "published",
    "frozen": "frozen encoder",
    "outside": "made elsewhere",
    "submitted": "submitted",
    "floor": "floor",
    "ceiling": "ceiling",
    "search": "Search models",
    "suite_average": "suite average",
    "model": "model",
    "source": "source",
    "seeds": "seeds",
    "download": "Download",
    "notes": "Notes",
    "findings": "Findings in the results folder",
    "printed_mean": "mean as the publication prints it, over its own tasks",
    "cite": "Cite",
    "others": "other models",
    "this_model": "this model",
    "strip_help": (
        "Dot: this model, with its 95% interval over three seeds or more. Strokes: the other models under the same "
        "conditions; the thick one is the best policy that reads nothing."
    ),
    "alt_strip": "{} among the other models, task by task",
    "over_one": "one task",
    "over_tasks": "{} tasks",
    "rank_in": "rank · {}",
    "evaluated": "evaluated",
    "hub": "page on the hub",
    "nothing": "Nothing matches these filters. Widen the search, the sources or the suites.",
    "caption": (
        "Percent. ± is half the 95% interval over seeds: this task and test set, other seeds. No ± where there is "
        "one seed, where all seeds gave the same score, and for published means."
    ),
    "shared_tasks": "No model has all tasks. Means are over the {} of {} that most models with runs share: {}.",
    "only_partial": (
        "The runs here are on a part of the test documents or on validation (limited runs, for instance): their scores "
        "are shown, never averaged and never ranked."
    ),
    "outside_tasks": "No two models share a task of this suite. Means are over other tasks that they share: {2}.",
    "tokens_per_second": "tokens a second",
    "explore": "Explore",
    "published_view": "Published experiments",
    "no_published": "There are no published experiments here.",
    "publication": "Publication",
    "without_values": "Baselines without published values",
    "choose_models": "Two to five models",
    "effect": "A − B on these tasks: {} points, 95% interval {} to {}.",
    "copy_link": "Link to this comparison",
    "pick_two": "Choose at least two models.",
    "all": "all tasks in common",
    "only_tasks": "Only these tasks",
    "documents": "Test-set noise from stored predictions",
    "documents_help": "Resamples the documents of each test split; takes seconds.",
    "standings": "Standings",
    "letters": "tie group",
    "letters_help": "Models that share a letter were not told apart.",
    "errors_view": "Errors",
    "choose_seed": "Seed",
    "kinds": "Show documents with",
    "right": "right",
    "missed": "missed",
    "spurious": "spurious",
    "boundary": "wrong boundary",
    "label_error": "wrong label",
    "both": "wrong label and boundary",
    "only_label": "Label",
    "any_label": "any label",
    "page": "Page",
    "no_documents": "No document matches.",
    "no_text": (
        "The text is not stored with results. Start the app where the corpora are at hand (BIOBENCH_DATA_DIR) to "
        "read it."
    ),
    "withheld": "This corpus is under an agreement: neither text nor gold is shown.",
    "predicted": "predicted",
    "gold": "gold",
    "no_runs_to_browse": "There are no runs to browse yet.",
    "documents_found": "documents",
    "efficiency_view": "Efficiency",
    "samples": "Show samples",
    "samples_help": "The first training documents of the split, mentions coloured as annotated.",
    "samples_withheld": "This corpus needs an agreement: none of its text is shown.",
    "samples_absent": "The data is not at hand here; `biobench tasks show {}` says how to get it.",
    "twins": "matched twins",
    "noise_pair": "matched but for the training seed",
    "no_twins": "not matched twins",
    "classes": "Class by class",
    "pair": "Pair",
    "classes_help": (
        "F1 of each label, mean over seeds; A is the first of the pair. Intervals: other fine-tuning seeds on this "
        "test set, each label alone; with many labels some will exclude zero by chance."
    ),
    "more_filters": "More filters",
    "size_filter": "Model size",
    "size_small": "below 100 million",
    "size_base": "100 to 200 million",
    "size_large": "above 200 million",
    "unknown": "unknown",
    "window_filter": "Window",
    "window_short": "up to 512 tokens",
    "window_middle": "513 to 4,096 tokens",
    "window_long": "above 4,096 tokens",
    "access_filter": "Access to the corpus",
    "licence_filter": "Licence of the corpus",
    "filter_help": "Nothing chosen: everything. A suite average stands only where all of its tasks are shown.",
    "choose_model": "Choose a model",
    "choose_task": "Choose a task",
    "points_title": "Seed by seed",
    "points": "Each dot is one seed; the line is the 95% interval of their mean.",
    "curves": "Validation while training",
    "step": "step",
    "seed": "seed",
    "counts": "Counts",
    "labels": "Labels",
    "label": "label",
    "support": "support in test",
    "labels_help": "F1 of each label, mean over seeds, in percent.",
    "matter": "Tasks that matter to me",
    "matter_all": "all of the suite",
    "compare_picked": "Compare",
    "pick_rows": "Pick two to five rows of the table.",
    "alt_seeds": "Score of every seed, with means and intervals",
    "alt_curves": "Curves over the training",
    "alt_needle": "Accuracy by length, one line a model",
    "alt_table": "Scores of all models: {}",
    "add_model": "Add your model",
    "average_help": (
        "Published scores stand only beside the average they are comparable with. “As published” takes each task's own."
    ),
    "complete": "Complete rows only",
    "complete_help": "Only models with a score on every task of the suite have a suite average.",
    "finding_help": "These files could not be read. Everything else is shown.",
    "no_runs_public": "No runs here yet: all scores on this page are published ones.",
    "task_weights": "How much each counts",
    "weights_help": (
        "From 1 to 9; all the same: the mean over corpora of their tasks' means. Compare counts corpora alike."
    ),
    "cite_help": "And every corpus that the results rest on: `biobench export --format bibtex`.",
    "changes": "Changes of this version",
    "against": "Against",
    "nobody": "nobody: one model's mistakes",
    "only_a": "what only A gets right",
    "only_b": "what only B gets right",
    "only_a_count": "only A right",
    "only_b_count": "only B right",
    "both_right": "both right",
    "neither": "neither",
    "against_help": "Counted over the gold of the test documents that both runs share; too much is not counted here.",
    "unlike_documents": "These two runs share no test documents.",
    "no_runs": "No runs here yet: all scores on this page are published ones. Run a model and reload it:",
    "all_refused": "All runs here are on tasks that fail their gate on this data; they are neither shown nor ranked.",
    "not_here": "The link names what is not here: {}. Something else is shown in its place.",
}
WORDS: Mapping[str, str] = _WORDS | VIEW_WORDS | STANDING_WORDS


def score(row: Row, words: Mapping[str, str], *, margin: bool = True) -> str:
    """The score in percent with its margin, which three seeds or more must bear."""
    return percent(row, margin=margin and row.n_seeds >= FEW_SEEDS, failed=words["failed_count"])


def metric_in(metric: str, words: Mapping[str, str]) -> str:
    """A score in words; one that is no known metric by its own name."""
    known = _METRICS.get(metric)
    return NAMES.get(metric, metric) if known is None else words[known]


def spoken(note: str) -> str:
    """A note of the report; without commands for whoever cannot run them here."""
    return (_COMMAND.sub("", note) or note) if is_public() else note
