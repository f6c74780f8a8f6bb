"""The results folder that the app shows, read once a content."""

from __future__ import annotations

import gc
import os
import threading
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

import streamlit as st

from biobench.errors import BioBenchError
from biobench.report.details.pretraining import (
    FOLDER,
    Pretraining,
    TrainingRun,
    pretraining_fingerprint,
    read_pretraining,
)
from biobench.report.groups import RunGroup
from biobench.report.results import Results, contents, fingerprint, load
from leaderboard.launch import PRETRAINING_VARIABLE, RESULTS_VARIABLE

SECONDS = 20.0
"""For so long no record file is looked at again unless its folder changed."""
_OPENED = "folder_opened"


def results_dir() -> Path:
    """The folder named by the environment, `results` without one."""
    return Path(os.environ.get(RESULTS_VARIABLE) or "results")


def pretraining_dir() -> Path:
    """The folder of pretraining runs: named by the environment, else `pretraining` in the results folder."""
    return Path(os.environ.get(PRETRAINING_VARIABLE) or results_dir() / FOLDER)


class Watch:
    """Whether something else than BioBench wrote over record files of a folder.

    Tens of thousands of files take a moment to look at, so no reader waits for it: an interaction that comes when the
    last look is old has another made beside it, and the next one knows. A page that is opened waits for it.
    """

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._busy = threading.Lock()
        self._looked = time.monotonic()
        self._contents = ""
        self.changes = 0
        """How often the files were others than those that had been read."""

    def read(self, found: Results) -> None:
        """The folder has been read: from here on this is what its files are compared with."""
        self._contents, self._looked = found.contents, time.monotonic()

    def look(self, after: float | None = None) -> threading.Thread | None:
        """Compare the files in a thread, which is returned; None where `after` (`SECONDS`) have not passed since."""
        old = time.monotonic() - self._looked >= (SECONDS if after is None else after)
        if not old or not self._busy.acquire(blocking=False):
            return None
        thread = threading.Thread(target=self._compare, name="results", daemon=True)
        thread.start()
        return thread

    def _compare(self) -> None:
        try:
            before = self._contents
            # a folder that cannot be read is told to the reader by whoever reads it next
            with suppress(BioBenchError):
                now = contents(self._folder)
                if now != before == self._contents:
                    self._contents = now
                    self.changes += 1
        finally:
            self._looked = time.monotonic()
            self._busy.release()


@st.cache_resource(max_entries=2, show_spinner=False)
def _watch(folder: str) -> Watch:
    return Watch(folder)


@st.cache_resource(max_entries=2, show_spinner="…")
def _load(folder: str, state: str) -> Results:
    """`state` stands for the folder's content: another one reads it anew."""
    del state
    loaded = load(folder)
    _watch(folder).read(loaded)
    # what was read stays for long: no click waits while the collector goes over it
    gc.freeze()
    return loaded


def results() -> Results:
    """Everything in the folder; read again when a file of it changes."""
    return _load(str(results_dir().resolve()), results_state())


def results_state() -> str:
    """Changes with the folder's content: at once where BioBench or git wrote, within seconds where a copy did."""
    folder = str(results_dir().resolve())
    watch = _watch(folder)
    look = watch.look()
    if _OPENED not in st.session_state:
        st.session_state[_OPENED] = True
        if look is not None:
            look.join()
    return f"{fingerprint(folder)} {watch.changes}"


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
