"""The page that checks a submission."""

from __future__ import annotations

import io
import shutil
from pathlib import Path

from streamlit.testing.v1 import AppTest

from biobench.submission.pack import submit
from biobench.submission.verify import examine
from leaderboard.submit import checked
from tests.helpers.app_make import (
    open_app,
)
from tests.helpers.submission_make import honest_run

SHARING = Path(__file__).parents[2] / "docs" / "sharing.md"


def test_a_pack_is_checked_here_and_as_an_upload(monkeypatch, tmp_path):
    """In the folder that the page and docs/sharing.md name, which `submit` makes by itself."""
    honest_run(tmp_path / "results")
    app = open_app(monkeypatch, tmp_path / "results", "submit")
    assert app.button(key="check").disabled
    assert app.code[0].proto.wrap_lines, "a phone cuts what does not wrap"
    for text in (app.code[0].value, SHARING.read_text(encoding="utf-8")):
        assert "--out submissions/my-encoder\nbiobench verify-submission submissions/my-" in text
    monkeypatch.chdir(tmp_path)
    pack = submit("org/tiny", "results")
    offered = app.run().selectbox(key="pack_here").options
    assert [option.partition("/")[0] for option in offered] == ["–", "submissions"]
    app.selectbox(key="pack_here").select_index(1).run()
    app.button(key="check").click().run()
    assert "waits for a maintainer" in app.warning[0].value, "nobody else has runs on it here"
    assert app.code[1].value == "biobench reproduce --of SUBMISSION --draw", "to be copied"
    app.file_uploader(key="pack").set_value(("pack.zip", b"not a zip", "application/zip")).run()
    app.button(key="check").click().run()
    told = app.error[0].value.replace("\\", "")
    assert told.endswith("the archive is damaged: File is not a zip file")
    archive = shutil.make_archive(str(tmp_path / "pack"), "zip", pack)
    uploaded = checked(io.BytesIO(Path(archive).read_bytes()))
    assert uploaded.state == "verified"
    assert uploaded.checks == examine(pack).checks
    assert {c.code for c in checked(io.BytesIO(b"not a zip")).checks} == {"L06"}


def test_a_refused_pack_is_offered_no_draw_and_findings_are_shown_whole():
    app = AppTest.from_function(draw_refused, default_timeout=60).run()
    assert "is damaged" in app.error[0].value
    assert app.table[0].value["what"].iloc[-1].endswith("the last words")
    assert not app.code


def draw_refused():
    """The verdict on a pack with a damaged score, which else would wait for a maintainer."""
    from biobench.submission.checks import Check, Verification
    from leaderboard.submit import _verdict

    damaged = Check("M04", "error", "runs", "is damaged")
    waits = Check("W01", "person", "runs", 40 * "word " + "the last words")
    _verdict(Verification("pack", "model", (damaged, waits)))
