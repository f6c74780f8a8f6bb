"""Checking a submission before it is sent: the same findings as `biobench verify-submission`."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import IO

import pandas as pd
import streamlit as st

from biobench.report.escape import plain
from biobench.report.rows import AverageName
from biobench.report.table import SUBMITTED
from biobench.store.statements import MANIFEST
from biobench.submission.checks import STATES, Check, Grade, Verification
from biobench.submission.guard import verify
from biobench.submission.unpack import UPLOAD_BYTES, unpack
from leaderboard.draw import show_table
from leaderboard.folder import results_dir
from leaderboard.launch import is_public
from leaderboard.table import literal

_GRADES: tuple[Grade, ...] = ("error", "person", "warning")
PACKED = "submissions"
"""Where `biobench submit` puts packs, in the folder that the app was started in."""


def show(words: Mapping[str, str], average: AverageName) -> None:
    """Draw the view. `average` plays no part here."""
    del average
    st.title(words["submit_title"])
    st.markdown(words["submit_help"])
    st.code("biobench submit MODEL\nbiobench verify-submission submissions/MODEL", language="bash")
    uploaded = st.file_uploader(
        words["upload"].format(UPLOAD_BYTES // 2**20),
        type=["zip"],
        key="pack",
        max_upload_size=UPLOAD_BYTES // 2**20,
    )
    packs = _packs()
    chosen = None
    if packs and uploaded is None and not is_public():
        chosen = st.selectbox(
            words["or_pack"],
            [None, *packs],
            key="pack_here",
            format_func=lambda p: "–" if p is None else plain(f"{p.parent.name}/{p.name}"),
        )
    if not st.button(words["check"], key="check", type="primary", disabled=uploaded is None and chosen is None):
        return
    with st.spinner(words["checking"]):
        against = results_dir()
        verification = (
            _checked(uploaded, against)
            if uploaded is not None
            else verify(chosen, None, against)
            if chosen is not None
            else None
        )
    if verification is not None:
        _verdict(verification, words)


def _packs() -> list[Path]:
    """Packs on the server that may be chosen: only these two folders are looked at."""
    return [
        path
        for folder in (Path(PACKED), results_dir() / SUBMITTED)
        if folder.is_dir()
        for path in sorted(folder.iterdir())
        if path.is_dir() and not path.is_symlink() and (path / MANIFEST).is_file()
    ]


def _checked(uploaded: IO[bytes], against: Path | None = None) -> Verification:
    """The findings of a zip file, unpacked into a folder that is removed afterwards."""
    with tempfile.TemporaryDirectory(prefix="biobench-submission-") as folder:
        refused = unpack(uploaded, Path(folder))
        return Verification("", "", tuple(refused)) if refused else verify(folder, None, against)


def _verdict(verification: Verification, words: Mapping[str, str]) -> None:
    name = literal(plain(verification.model)) or words["submission"]
    state = verification.state
    tell = {"verified": st.success, "consistent": st.info, "person": st.warning, "refused": st.error}[state]
    tell(f"{name}: {words[f'state_{state}']}")
    states = {words[f"runs_{one}"]: f"{verification.count(one)} / {verification.records}" for one in STATES}
    grades = {words[f"{grade}s_found"]: sum(c.grade == grade for c in verification.checks) for grade in _GRADES}
    for column, (label, share) in zip(st.columns(len(states)), states.items(), strict=True):
        column.metric(label, share)
    for column, (label, number) in zip(st.columns(len(grades)), grades.items(), strict=True):
        column.metric(label, number)
    if verification.checks:
        show_table(_table(verification.checks, words))
        st.caption(words["codes"])


def _table(checks: tuple[Check, ...], words: Mapping[str, str]) -> pd.DataFrame:
    """Errors first, then what needs a person; at most a thousand lines."""
    order = sorted(checks, key=lambda c: (_GRADES.index(c.grade), c.code, c.where))[:1_000]
    return pd.DataFrame(
        [
            {
                words["code"]: c.code,
                words["grade"]: words[f"grade_{c.grade}"],
                words["where"]: plain(c.where),
                words["what"]: plain(c.what),
            }
            for c in order
        ]
    )
