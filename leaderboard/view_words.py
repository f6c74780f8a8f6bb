"""The words of the views that are about one thing: needle, pretraining, submission; (English, French)."""

from __future__ import annotations

VIEW_WORDS: dict[str, str] = {
    "published_help": (
        "What publications report beyond the task tables, as printed, each with its source and what of ours can be set "
        "beside it."
    ),
    "needle_view": "Needle",
    "no_needle": "There are no needle runs here yet. Make one and reload this page:",
    "choose_maps": "Up to six models",
    "needle_help": (
        "Accuracy in percent by length of the document and place of the fact, with the interval for other examples of "
        "the same kind, 95% over all cells together. The tint goes from chance (50) to all right (100). Hatched: "
        "beyond the model's window, nothing was scored."
    ),
    "reads_up_to": "reads up to",
    "over_all": "over all lengths",
    "reads_help": (
        "Reads up to: the last length, from the shortest on, at which the whole interval is above guessing. Over all "
        "lengths: each counts once, and one beyond the window as guessing (50; hollow in the chart)."
    ),
    "majority": "most frequent answer",
    "all_lengths": "all",
    "all_positions": "all",
    "position_start": "start",
    "position_middle": "middle",
    "position_end": "end",
    "beyond": "beyond the model's window",
    "not_read": "n/a",
    "pairs": "pairs that share a haystack",
    "pretraining_view": "Pretraining",
    "no_pretraining": (
        "No pretraining run was found. Name a folder of runs, or put them below “pretraining” in the results folder:"
    ),
    "choose_runs": "Up to six runs",
    "pick_runs": "Choose at least one.",
    "training_run": "run",
    "loss_curves": "Loss",
    "loss": "loss, nats a target",
    "loss_help": (
        "Lines: training; diamonds: held-out windows. Objectives differ in what they predict: losses compare within "
        "one objective only."
    ),
    "thinned": "Long curves are thinned to every {}th point.",
    "tokens": "input tokens",
    "learning_rate": "learning rate",
    "phase": "phase",
    "event": "event",
    "train": "training",
    "evaluation": "evaluation",
    "ledger": "How it was pretrained",
    "ledger_help": (
        "From the training ledger of the run that exported exactly these weights. The Pretraining view has its curves "
        "and lays ledgers side by side."
    ),
    "ledgers": "Ledgers side by side",
    "only_differing": "Only what differs",
    "quantity": "quantity",
    "equal": "equal",
    "yes": "yes",
    "no_binding": "no: twins must agree",
    "no_free": "no, may differ",
    "cka": "Divergence of representations (1 − CKA)",
    "analysis": "Analysis",
    "estimator": "Estimator",
    "no_lines": "This analysis holds no layers.",
    "cka_help": (
        "Bars: 95% jackknife intervals over texts. Seed noise: two runs that differ by the training seed alone."
    ),
    "layer": "layer",
    "divergence": "divergence, %",
    "seed_noise": "seed noise, %",
    "ratio": "ratio",
    "submit_view": "Submit",
    "submit_title": "Check a submission",
    "submit_help": (
        "A submission is the pack that `biobench submit` makes: records, predictions and a manifest. Every score is "
        "computed again from the predictions. Nothing is kept here; send the pack as the results repository says."
    ),
    "upload": "The pack as a zip file, at most {} MB",
    "or_pack": "or a pack on this machine",
    "check": "Check",
    "checking": "Scoring again from the predictions…",
    "submission": "Submission",
    "state_verified": "verified: every run was scored again on the data",
    "state_consistent": "consistent, but not scored again: the data of some tasks is not here",
    "state_person": "waits for a maintainer",
    "state_refused": "refused; the errors below say why",
    "runs_verified": "runs verified",
    "runs_consistent": "consistent, not scored again",
    "runs_person": "runs that wait",
    "runs_refused": "runs refused",
    "errors_found": "errors",
    "persons_found": "findings for a maintainer",
    "warnings_found": "warnings",
    "codes": (
        "Codes: L layout, M manifest, R record, T task, D data, P predictions, S score, C completeness, W waiting. "
        "Errors refuse, findings for a maintainer wait for one, warnings do neither."
    ),
    "code": "code",
    "grade": "grade",
    "grade_error": "error",
    "grade_person": "for a maintainer",
    "grade_warning": "warning",
    "where": "where",
    "what": "what",
}
