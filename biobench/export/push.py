"""A model's results sent to its repository on the hub, as a request that the repository's owners
merge.
"""

from __future__ import annotations

import re

import yaml

from biobench.core.hub import client_errors, explain
from biobench.errors import StoreError, UsageError
from biobench.reporting.escape import plain

RESULTS_FILE = ".eval_results/biobench.yaml"
REPOSITORY = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]+")
_TITLE = "Results with BioBench"


def push_results(repository: str, text: str, format: str) -> str:
    """The page of the request that adds an exported text to this model's repository.

    model-card: the entries of its `model-index` are added to those of the README there, or replace
    what has the same task, data set and metric; its other fields and its text stay. A repository
    without a README gets the whole text. eval-results: the file `.eval_results/biobench.yaml`.
    Raises UsageError for another format, a name that is no repository and results that are there
    already, StoreError where the hub refuses.
    """
    if format not in ("model-card", "eval-results"):
        message = f"format '{plain(format)}' is nothing for a model's repository"
        raise UsageError(message, hint="--push takes model-card and eval-results")
    if not REPOSITORY.fullmatch(repository):
        raise UsageError(
            f"'{plain(repository)}' is not a model's repository",
            hint="write --push ORGANISATION/NAME",
        )
    try:
        if format == "model-card":
            page = _add_entries(repository, text)
        else:
            page = _add_file(repository, RESULTS_FILE, text)
    except client_errors() as error:
        message, hint = explain(error, repository, "model", "main")
        raise StoreError(f"hub model {plain(repository)}: {plain(message)}", hint=hint) from error
    if page is None:
        raise UsageError(
            f"{plain(repository)} has these results already", hint="nothing is to be sent"
        )
    return page


def _add_entries(repository: str, text: str) -> str | None:
    from huggingface_hub import HfApi, metadata_update

    if not HfApi().file_exists(repository, "README.md"):
        return _add_file(repository, "README.md", text)
    entries = {"model-index": yaml.safe_load(text.split("---\n")[1])["model-index"]}
    commit = metadata_update(
        repository, entries, overwrite=True, create_pr=True, commit_message=_TITLE
    )
    return getattr(commit, "pr_url", None)


def _add_file(repository: str, path: str, text: str) -> str | None:
    from huggingface_hub import CommitOperationAdd, HfApi

    request = HfApi().create_commit(
        repository,
        [CommitOperationAdd(path, text.encode())],
        commit_message=_TITLE,
        create_pr=True,
    )
    return request.pr_url
