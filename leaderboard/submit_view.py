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
from biobench.submission.layout import Check
from biobench.submission.pack import MANIFEST
from biobench.submission.unpack import UPLOAD_BYTES, unpack
from biobench.submission.verify import Verification, verify
from leaderboard.folder import results_dir
from leaderboard.table import literal

PACKED = "submissions"
"""Where `biobench submit` puts packs, in the folder that the app was started in."""


def show(words: Mapping[str, str], average: AverageName) -> None:
    """Draw the view. `average` plays no part here."""
    del average
    st.title(words["submit_title"])
    st.markdown(words["submit_help"])
    st.code("biobench submit MODEL\nbiobench verify-submission submissions/MODEL", language="bash")
    uploaded = st.file_uploader(
        words["upload"].format(UPLOAD_BYTES // 2**20), type=["zip"], key="pack", max_upload_size=UPLOAD_BYTES // 2**20
    )
    packs = _packs()
    chosen = st.selectbox(
        words["or_pack"],
        [None, *packs],
        key="pack_here",
        format_func=lambda p: "–" if p is None else plain(f"{p.parent.name}/{p.name}"),
        disabled=uploaded is not None or not packs,
    )
    if not st.button(words["check"], key="check", type="primary", disabled=uploaded is None and chosen is None):
        return
    with st.spinner(words["checking"]):
        found = _checked(uploaded) if uploaded is not None else verify(chosen) if chosen is not None else None
    if found is not None:
        _verdict(found, words)


def _packs() -> list[Path]:
    """Packs on the server that may be chosen: only these two folders are looked at."""
    return [
        path
        for folder in (Path(PACKED), results_dir() / SUBMITTED)
        if folder.is_dir()
        for path in sorted(folder.iterdir())
        if path.is_dir() and not path.is_symlink() and (path / MANIFEST).is_file()
    ]


def _checked(uploaded: IO[bytes]) -> Verification:
    """The findings of a zip file, unpacked into a folder that is removed afterwards."""
    with tempfile.TemporaryDirectory(prefix="biobench-submission-") as folder:
        refused = unpack(uploaded, Path(folder))
        return Verification("", "", tuple(refused), 0, 0) if refused else verify(folder)


def _verdict(found: Verification, words: Mapping[str, str]) -> None:
    name = literal(plain(found.model)) or words["submission"]
    if found.accepted:
        st.success(f"{name}: {words['accepted']}")
    else:
        st.error(f"{name}: {words['refused']}")
    errors = sum(c.grade == "error" for c in found.checks)
    left, middle, right = st.columns(3)
    left.metric(words["records_rescored"], f"{found.rescored} / {found.records}")
    middle.metric(words["errors_found"], errors)
    right.metric(words["warnings_found"], len(found.checks) - errors)
    if found.checks:
        st.dataframe(_table(found.checks, words), hide_index=True, width="stretch")
        st.caption(words["codes"])


def _table(checks: tuple[Check, ...], words: Mapping[str, str]) -> pd.DataFrame:
    """Errors first; at most a thousand lines."""
    order = sorted(checks, key=lambda c: (c.grade != "error", c.code, c.where))[:1_000]
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
