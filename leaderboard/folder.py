"""The results folder that the app shows, read once a content."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterable, Mapping
from pathlib import Path

import streamlit as st

from biobench.report.details.pretraining import (
    FOLDER,
    Pretraining,
    TrainingRun,
    pretraining_fingerprint,
    read_pretraining,
)
from biobench.report.groups import RunGroup
from biobench.report.table import Results, contents, fingerprint, load
from leaderboard.launch import PRETRAINING_VARIABLE, RESULTS_VARIABLE

SECONDS = 20
"""For so long no record file is looked at again unless its folder changed."""


def results_dir() -> Path:
    """The folder named by the environment, `results` without one."""
    return Path(os.environ.get(RESULTS_VARIABLE) or "results")


def pretraining_dir() -> Path:
    """The folder of pretraining runs: named by the environment, else `pretraining` in the results folder."""
    return Path(os.environ.get(PRETRAINING_VARIABLE) or results_dir() / FOLDER)


@st.cache_resource(max_entries=2, show_spinner="…")
def _load(folder: str, state: str) -> Results:
    """`state` stands for the folder's content: another one reads it anew."""
    del state
    loaded = load(folder)
    # what was read stays for long: no click waits while the collector goes over it
    gc.freeze()
    return loaded


def results() -> Results:
    """Everything in the folder; read again when a file of it changes."""
    return _load(str(results_dir().resolve()), results_state())


def results_state() -> str:
    """Changes with the folder's content: at once where BioBench or git wrote, within seconds where a copy did."""
    folder = str(results_dir().resolve())
    return f"{fingerprint(folder)} {_contents(folder)}"


@st.cache_data(ttl=SECONDS, max_entries=2, show_spinner=False)
def _contents(folder: str) -> str:
    """Tens of thousands of files take a moment, so not at every click."""
    return contents(folder)


def inside(text: str) -> str:
    """A message about files of the results or the pretraining folder, without where on the server these lie."""
    for folder in (results_dir(), results_dir().resolve(), pretraining_dir(), pretraining_dir().resolve()):
        text = text.replace(f"{folder}{os.sep}", "")
    return text


def say_no_runs(words: Mapping[str, str]) -> None:
    """Why there is no run to browse."""
    if results().refusals:
        st.warning(words["all_refused"])
    else:
        st.info(words["no_runs_to_browse"])


@st.cache_resource(max_entries=2, show_spinner="…")
def _read(folder: str, state: str) -> Pretraining:
    """`state` stands for the folder's content."""
    del state
    return read_pretraining(folder)


def pretraining() -> Pretraining:
    """Every pretraining run and analysis; read again when a file of them changes."""
    folder = str(pretraining_dir().resolve())
    return _read(folder, pretraining_fingerprint(folder))


def trained_by(groups: Iterable[RunGroup]) -> TrainingRun | None:
    """The pretraining run that exported the encoder of these runs, known by its weights; None where none did."""
    trained = pretraining()
    weights = dict.fromkeys(g.briefs[0].weights for g in groups)
    return next((run for w in weights if (run := trained.of_model(w)) is not None), None)
