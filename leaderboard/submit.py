"""Checking a submission before it is sent: the same findings as `biobench verify-submission`."""

from __future__ import annotations

import tempfile
import threading
from pathlib import Path
from typing import IO

import pandas as pd
import streamlit as st

from biobench.reporting.escape import plain
from biobench.reporting.results import SUBMITTED
from biobench.store.statements import MANIFEST
from biobench.submission.checks import DRAW_COMMAND, Verification
from biobench.submission.guard import verify
from biobench.submission.unpack import UPLOAD_BYTES, unpack
from leaderboard.launch import is_public
from leaderboard.page import literal, results_dir, text

MOST_LINES = 1_000
PACKED = "submissions"
"""Folder in which `biobench submit` packs, where the app was started."""
TELL = {
    "verified": st.success,
    "consistent": st.info,
    "person": st.warning,
    "refused": st.error,
}


def show() -> None:
    """Draw the view."""
    st.title("Check a submission")
    st.markdown(
        "A submission is the pack that `biobench submit` makes: records, predictions and a "
        "manifest. Every score is computed again from the predictions. Nothing is kept here; send "
        "the pack as the results repository says."
    )
    pack = f"{PACKED}/my-encoder"
    against = "" if is_public() else f" --against {results_dir().name}"
    st.code(
        f"biobench submit my-org/my-encoder --out {pack}\n"
        f"biobench verify-submission {pack}{against}",
        language=None,  # the colour of options is too light to be read
        wrap_lines=True,
    )
    megabytes = UPLOAD_BYTES // 2**20
    uploaded = st.file_uploader(
        f"The pack as a zip file, at most {megabytes} MB",
        type=["zip"],
        key="pack",
        max_upload_size=megabytes,
    )
    chosen = None
    packs = _packs_here()
    if packs and uploaded is None and not is_public():
        chosen = st.selectbox(
            "or a pack on this machine",
            [None, *packs],
            key="pack_here",
            format_func=lambda p: "–" if p is None else plain(f"{p.parent.name}/{p.name}"),
        )
    has_none = uploaded is None and chosen is None
    if not st.button("Check", key="check", type="primary", disabled=has_none):
        return
    if not _turn().acquire(blocking=False):
        st.warning("Another pack is being checked. Try again in a minute.")
        return
    running = st.empty()
    running.info("The check is running: every score is computed again. Large packs take a minute.")
    try:
        if uploaded is not None:
            _verdict(checked(uploaded, results_dir()))
        elif chosen is not None:
            _verdict(verify(chosen, None, results_dir()))
    finally:
        _turn().release()
        running.empty()


def _packs_here() -> list[Path]:
    """The packs on the server that may be chosen: only these folders are looked at."""
    packs: dict[Path, None] = {}
    for folder in (Path(PACKED), results_dir() / SUBMITTED):
        for manifest in sorted(folder.glob(f"*/{MANIFEST}")):
            if manifest.is_file() and not manifest.parent.is_symlink():
                packs[manifest.parent.resolve()] = None
    return list(packs)


@st.cache_resource(show_spinner=False)
def _turn() -> threading.Lock:
    """Held by the session whose pack is checked: each check may take 1.5 GiB of memory."""
    return threading.Lock()


def checked(uploaded: IO[bytes], against: Path | None = None) -> Verification:
    """The findings of a zip file, unpacked into a folder that is removed afterwards."""
    with tempfile.TemporaryDirectory(prefix="biobench-submission-") as folder:
        pack, refused = unpack(uploaded, Path(folder, "pack"))
        return Verification("", "", tuple(refused)) if refused else verify(pack, None, against)


def _verdict(verification: Verification) -> None:
    name = literal(plain(verification.model)) or "Submission"
    order = sorted(verification.checks, key=lambda check: (check.grade, check.code, check.where))
    errors = [check.what for check in order if check.grade == "error"]
    verdict = f"{name}: {verification.summary()}"
    if errors:
        verdict += f": {literal(plain(errors[0]))}"
    TELL[verification.state](verdict)
    if not order:
        return
    rows = []
    for check in order[:MOST_LINES]:
        rows.append(
            {
                "code": check.code,
                "grade": check.grade,
                "where": literal(plain(check.where)),
                "what": text(check.what),
            }
        )
    # unlike a grid, it wraps its texts
    st.table(pd.DataFrame(rows).set_index("code"))
    # of our own words: what a finding quotes may come from the pack
    if not errors and any(check.code == "W01" for check in order):
        st.caption("What a maintainer runs:")
        st.code(DRAW_COMMAND, language=None)
    st.caption(
        "Codes: L layout, M manifest, R record, T task, D data, P predictions, S score, C "
        "completeness, W waiting. Grades: an error refuses, “person” waits for a maintainer, a "
        "warning does neither."
    )
