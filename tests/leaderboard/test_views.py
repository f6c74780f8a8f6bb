"""Every view on every kind of folder, and the numbers of the views that read more than the board does."""

from __future__ import annotations

import contextlib
import html
import io
import json
import re
import stat
import zipfile
from urllib.parse import parse_qs

import pytest
from streamlit.testing.v1 import AppTest

from biobench.comparison.classes import class_differences
from biobench.data.catalog import load_task
from biobench.data.load import load_data
from biobench.errors import UsageError
from biobench.report.details import pretraining
from biobench.report.details.ledgers import ledger_table
from biobench.report.details.marked import sample
from biobench.report.details.needle import needle_grid, needle_grids
from biobench.report.details.pretraining import read_pretraining
from biobench.report.table import load
from biobench.schema.document import Document, Span
from biobench.submission.pack import MANIFEST, submit
from biobench.submission.unpack import unpack
from biobench.submission.verify import examine as verify
from leaderboard.launch import PRETRAINING_VARIABLE, launch
from leaderboard.needle_view import maps_html
from leaderboard.submit_view import _checked
from leaderboard.words import WORDS
from tests.helpers.app_make import APP, Cells, board, bodies, open_app, said
from tests.helpers.ledger_make import ledger, write
from tests.helpers.report_make import save_run, save_runs
from tests.helpers.submission_make import honest_run
from tests.helpers.view_make import cka, fill, metrics_line, save_needle, save_pretraining

VIEWS = (
    "board",
    "model_view",
    "task_view",
    "compare_view",
    "errors_view",
    "needle_view",
    "pretraining_view",
    "published_view",
    "efficiency_view",
    "submit_view",
)


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Kind -> results folder."""
    root = tmp_path_factory.mktemp("kinds")
    (root / "empty").mkdir()
    fill(root / "real", root / "real" / "pretraining")
    for model in range(200):
        save_runs(root / "many", f"org/model-{model}", "bc5cdr", {42: 0.3 + model / 500, 43: 0.31 + model / 500})
    save_runs(root / "damaged", "tiny", "bc5cdr", {42: 0.6, 43: 0.7})
    save_needle(root / "damaged", "tiny", 1024, 0.9)
    save_pretraining(root / "damaged" / "pretraining", steps=10)
    next((root / "damaged").glob("runs/bc5cdr/*.json")).write_text('{"model": "<script>"}')
    metrics = root / "damaged" / "pretraining" / "twin" / "metrics.jsonl"
    metrics.write_text("<script>\n" + metrics.read_text() + '{"event": "tr')
    (root / "damaged" / "pretraining" / "detour" / "ledger.json").write_text("{}")
    (root / "damaged" / "pretraining" / "cka.json").write_text('{"pair": 1, "lines": 2}')
    return {kind: root / kind for kind in ("empty", "absent", "real", "many", "damaged")}


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("kind", ["empty", "absent", "real", "many", "damaged"])
def test_every_view_opens_on_every_folder(monkeypatch, folders, view, kind):
    app = open_app(monkeypatch, folders[kind], view=view)
    # an input error would stand here as a line in red
    assert not app.error
    shown = [*app.title, *app.dataframe, *app.info, *bodies(app), *app.subheader]
    assert shown
    if (kind, view) in (("damaged", "board"), ("damaged", "pretraining_view")):
        assert any("Findings" in e.label for e in app.expander)
    assert not any("<script" in body for body in bodies(app))


def test_the_needle_view_shows_the_grid(monkeypatch, folders):
    app = open_app(monkeypatch, folders["real"], view="needle_view")
    (body,) = bodies(app)
    parser = Cells()
    parser.feed(body)
    rows = needle_grid(folders["real"], ["needle_fr"])
    scored = [r for r in rows if r.score is not None]
    assert {r.model for r in scored} == {"example/long-encoder", "example/base-encoder"}
    shown = re.findall(r">([\d.]+)<small>([\d.]+)–([\d.]+)</small></td>", body)
    expected = [tuple(f"{100 * v:.1f}" for v in (r.score, r.low, r.high)) for r in scored]
    assert sorted(shown) == sorted(expected)
    # two lengths of three positions and their margin are beyond the shorter window
    assert body.count("n/a") == len(rows) - len(scored) == 8
    app.multiselect(key="maps").set_value(["example/base-encoder"]).run()
    assert "long-encoder" not in bodies(app)[0]
    assert app.query_params["maps"] == "example/base-encoder"


def test_needle_maps_escape_names(tmp_path):
    save_needle(tmp_path, "<img src=x onerror=alert(1)>", 512, 0.9)
    shown = maps_html(needle_grids(tmp_path), WORDS)
    parser = Cells()
    parser.feed(shown)
    assert "img" not in parser.tags
    assert "&lt;img" in shown


def test_the_pretraining_view_shows_the_last_losses_and_the_ledgers(monkeypatch, folders):
    app = open_app(monkeypatch, folders["real"], view="pretraining_view")
    assert app.multiselect(key="runs").value == ["detour", "twin"]
    held = {run.name: run for run in read_pretraining(folders["real"] / "pretraining").runs}
    table = next(f.value for f in app.dataframe if "run" in f.value.columns)
    last = {(r["run"], r["phase"], r["event"]): r["loss, nats a target"] for r in table.to_dict("records")}
    for name, run in held.items():
        point = [p for p in run.points if p.event == "evaluation"][-1]
        assert last[name, "decay", "evaluation"] == f"{point.loss:.4f}"
    assert app.success[0].value == "matched"
    ledgers = next(f.value for f in app.dataframe if "quantity" in f.value.columns)
    found = ledger_table(held["detour"].ledger, held["twin"].ledger)
    assert ledgers["quantity"].tolist() == [name for name, *_ in found.rows]
    app.toggle(key="only_differing").set_value(True).run()
    ledgers = next(f.value for f in app.dataframe if "quantity" in f.value.columns)
    assert ledgers["quantity"].tolist() == [name for name, a, b, _ in found.rows if a != b]
    divergence = next(f.value for f in app.dataframe if "layer" in f.value.columns)
    assert divergence.set_index("layer").loc["0", "divergence, %"] == "10.00 [8.00 … 12.00]"


def test_the_model_view_shows_the_ledger_of_these_weights(monkeypatch, tmp_path):
    own = "ab" * 32
    save_runs(tmp_path, "tiny", "bc5cdr", {42: 0.6, 43: 0.7}, weights=own)
    save_runs(tmp_path, "another", "bc5cdr", {42: 0.6, 43: 0.7})
    save_pretraining(tmp_path / "pretraining", steps=4)
    for name, made in (("detour", own), ("twin", "cd" * 32)):
        held = ledger(name, "clm" if name == "detour" else "mlm", model_hash=made)
        write(tmp_path / "pretraining" / name / "ledger.json", held)

    def shown(model):
        app = open_app(monkeypatch, tmp_path, view="model_view", model="\x1f".join((model, "", "run")))
        assert app.title[0].value == model
        return app, [e for e in app.expander if e.label.startswith("How it was pretrained")]

    assert not shown("another")[1]
    _, (found,) = shown("tiny")
    assert found.label.endswith("detour")
    facts = found.table[0].value
    assert facts.loc["tokens"].tolist() == ["1,000"]
    assert facts.loc["seeds"].tolist() == ["data 1, init 1, training 1"]
    (phase,) = found.dataframe[0].value.to_dict("records")
    assert (phase["objective"], phase["tokens"], phase["training loss"]) == ("clm", "1,000", "2.0000")

    # a damaged one says so, and the page stays
    file = tmp_path / "pretraining" / "detour" / "ledger.json"
    file.write_text(file.read_text().replace('"steps":10', '"steps":"many"'))
    app, (found,) = shown("tiny")
    assert "damaged" in found.warning[0].value
    assert app.dataframe


def test_a_folder_of_runs_can_be_named(monkeypatch, tmp_path):
    save_pretraining(tmp_path / "elsewhere", steps=4)
    monkeypatch.setenv(PRETRAINING_VARIABLE, str(tmp_path / "elsewhere"))
    app = open_app(monkeypatch, tmp_path / "none", view="pretraining_view")
    assert app.multiselect(key="runs").value == ["detour", "twin"]
    with pytest.raises(UsageError, match="is not a folder"):
        launch(tmp_path, 8501, tmp_path / "nowhere")


def test_pretraining_files_are_not_trusted(tmp_path, monkeypatch):
    run = tmp_path / "run"
    run.mkdir()
    good = json.dumps(metrics_line(1, 4, 2.0))
    bad = [
        json.dumps(metrics_line(2, 4, 2.0, tokens=-1)),
        json.dumps(metrics_line(2, 4, float("nan"))),
        json.dumps(metrics_line(2, 4, 2.0, phase="x" * 1000)),
        "[" * 100_000,
    ]
    (run / "metrics.jsonl").write_text("\n".join([good, *bad, good, '{"event": ']))
    held = read_pretraining(tmp_path)
    assert [len(r.points) for r in held.runs] == [2]
    assert [f.file for f in held.findings] == [f"run/metrics.jsonl:{n}" for n in range(2, 6)]
    assert "'loss'" in held.findings[1].what
    (tmp_path / "link").symlink_to(run)
    (tmp_path / "cka.json").write_text(json.dumps(cka() | {"texts": "many"}))
    (tmp_path / "other.json").write_text('{"standings": []}')
    held = read_pretraining(tmp_path)
    assert len(held.runs) == 1
    assert held.findings[0].file == "cka.json"
    monkeypatch.setattr(pretraining, "METRICS_BYTES", 10)
    assert not read_pretraining(tmp_path).runs


def test_long_curves_are_thinned_and_keep_their_ends(tmp_path):
    count = 2 * pretraining.MOST_POINTS + 3
    lines = [json.dumps(metrics_line(i, count, 1.0 + i)) + "\n" for i in range(1, count + 1)]
    (tmp_path / "metrics.jsonl").write_text("".join(lines))
    (run,) = read_pretraining(tmp_path).runs
    assert len(run.points) <= pretraining.MOST_POINTS + 1
    assert run.points[0].total_step == 1
    assert run.points[-1].total_step == count
    assert run.skipped == 2


@pytest.fixture
def pack(tmp_path):
    for seed in (42, 43):
        honest_run(tmp_path / "results", seed)
    return submit("org/tiny", tmp_path / "results", tmp_path / "work" / "submissions" / "tiny")


def zipped(folder, top=""):
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                archive.write(path, top + path.relative_to(folder).as_posix())
    return held


def test_a_pack_of_this_machine_is_checked(monkeypatch, tmp_path, pack):
    monkeypatch.chdir(tmp_path / "work")
    app = open_app(monkeypatch, tmp_path / "results", view="submit_view")
    assert app.button(key="check").disabled
    box = app.selectbox(key="pack_here")
    assert box.options == ["–", "submissions/tiny"]
    box.select_index(1).run()
    app.button(key="check").click().run()
    found = verify(pack)
    assert found.accepted
    assert "verified" in app.success[0].value
    assert not found.checks
    assert [m.value for m in app.metric] == ["2 / 2", "0 / 2", "0 / 2", "0 / 2", "0", "0", "0"]
    (pack / MANIFEST).write_text("{}")
    app.button(key="check").click().run()
    assert "refused" in app.error[0].value
    assert app.dataframe[0].value["code"].tolist() == ["M01"]


@pytest.mark.parametrize("top", ["", "tiny/"])
def test_an_uploaded_pack_is_checked_as_its_folder_is(pack, top):
    found = _checked(zipped(pack, top))
    assert found.accepted
    assert found.state == "verified"
    assert found.checks == verify(pack).checks


def changed(pack, name, content, **attributes):
    held = zipped(pack)
    with zipfile.ZipFile(held, "a") as archive:
        member = zipfile.ZipInfo(name)
        for key, value in attributes.items():
            setattr(member, key, value)
        archive.writestr(member, content)
    return held


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("../escape.json", "L02"),
        ("/etc/passwd", "L02"),
        ("runs/demo_topic/../../x.json", "L02"),
        ("runs\\demo_topic\\x.json", "L02"),
        ("index.html", "L02"),
        (MANIFEST, "L02"),
    ],
)
def test_uploads_with_foreign_members_are_refused_before_anything_is_written(tmp_path, pack, name, code):
    target = tmp_path / "target"
    target.mkdir()
    twice = pytest.warns(UserWarning, match="Duplicate") if name == MANIFEST else contextlib.nullcontext()
    with twice:
        held = changed(pack, name, b"x")
    assert {c.code for c in unpack(held, target)} == {code}
    assert not list(target.iterdir())
    assert not (tmp_path / "escape.json").exists()


def test_uploads_that_are_links_too_large_or_no_zip_are_refused(tmp_path, pack):
    record = f"runs/demo_topic/{'a' * 32}.json"
    link = changed(pack, record, b"/etc/passwd", external_attr=(stat.S_IFLNK | 0o777) << 16)
    assert {c.code for c in unpack(link, tmp_path / "1")} == {"L01"}
    bomb = changed(pack, record, b"0" * (2**20 + 1), compress_type=zipfile.ZIP_DEFLATED)
    assert {c.code for c in unpack(bomb, tmp_path / "2")} == {"L03"}
    assert {c.code for c in unpack(io.BytesIO(b"not a zip"), tmp_path / "3")} == {"L06"}
    assert not any((tmp_path / str(n)).exists() for n in (1, 2, 3))


def test_an_archive_that_lies_about_its_sizes_is_stopped_while_reading(tmp_path, pack, monkeypatch):
    monkeypatch.setattr("biobench.submission.unpack.UNPACKED_BYTES", 1000)
    target = tmp_path / "target"
    target.mkdir()
    assert {c.code for c in unpack(zipped(pack), target)} == {"L03"}
    monkeypatch.setattr("biobench.submission.unpack.UPLOAD_BYTES", 1000)
    assert "1000" in unpack(zipped(pack), target)[0].what


def test_board_filters_by_size_window_access_and_licence(monkeypatch, tmp_path):
    save_runs(tmp_path, "short", "bc5cdr", {42: 0.6}, windows={"max_length": 512})
    save_runs(tmp_path, "long", "bc5cdr", {42: 0.7}, windows={"max_length": 8192})
    save_run(tmp_path, "long", "gad", 42, 0.7)
    app = open_app(monkeypatch, tmp_path)

    def models():
        return set(board(app)["model"])

    assert {"short", "long"} <= models()
    app.multiselect(key="windows").set_value(["window_long"]).run()
    assert models() == {"long"}
    assert app.query_params["windows"] == "window_long"
    app.multiselect(key="windows").set_value([])
    app.multiselect(key="sizes").set_value(["size_small"]).run()
    assert models() == {"short", "long"}
    app.multiselect(key="sizes").set_value(["unknown"]).run()
    assert models().isdisjoint({"short", "long"})
    app.multiselect(key="sizes").set_value(["size_small"])
    app.multiselect(key="access").set_value(["agreement"]).run()
    assert "Nothing matches" in app.warning[0].value
    linked = AppTest.from_file(APP, default_timeout=30)
    linked.query_params["windows"] = "window_long\x1f<b>"
    linked.run()
    assert linked.multiselect(key="windows").value == ["window_long"]


def test_the_compare_view_badges_twins_and_lays_classes_side_by_side(monkeypatch, tmp_path):
    made = {"detour": "ab" * 32, "twin": "cd" * 32}
    save_pretraining(tmp_path / "pretraining", steps=4)
    for name, level in (("detour", 0.6), ("twin", 0.7)):
        for task in ("bc5cdr", "hoc"):
            save_runs(tmp_path, name, task, {42: level, 43: level + 0.02}, weights=made[name])
        held = ledger(name, "clm" if name == "detour" else "mlm", model_hash=made[name])
        write(tmp_path / "pretraining" / name / "ledger.json", held)

    def shown():
        return open_app(monkeypatch, tmp_path, view="compare_view", models="\x1f".join(made), classes_task="bc5cdr")

    app = shown()
    assert any("matched twins" in m.value and "not matched" not in m.value for m in app.markdown)
    assert any(t.value.startswith("Matched twins: detour and twin") for t in app.text)
    classes = next(f.value for f in app.dataframe if "support in test" in f.value.columns)
    groups = {g.model: g for g in load(tmp_path).groups if g.task == "bc5cdr"}
    lines = class_differences(groups["detour"], groups["twin"])
    assert lines
    assert classes["label"].tolist() == [line.label for line in lines]
    assert classes["difference, points"].tolist() == pytest.approx([100 * line.difference for line in lines])

    write(tmp_path / "pretraining" / "twin" / "ledger.json", ledger("twin", model_hash=made["twin"], steps=11))
    assert any("not matched twins" in m.value for m in shown().markdown)
    file = tmp_path / "pretraining" / "twin" / "ledger.json"
    file.write_text(file.read_text().replace('"steps":11', '"steps":"many"'))
    app = shown()
    assert "damaged" in app.warning[0].value
    assert not any("twins" in m.value for m in app.markdown)


def test_compare_opens_on_the_pair_and_the_suite_of_page_one_and_its_link_says_all(monkeypatch, tmp_path):
    for model, levels in (("org/first", (0.7, 0.4)), ("org/second", (0.6, 0.5)), ("org/third", (0.5, 0.6))):
        for task, level in zip(("bc5cdr", "quaero_emea"), levels, strict=True):
            save_runs(tmp_path, model, task, {42: level, 43: level + 0.02, 44: level + 0.01})
        save_runs(tmp_path, model, "gad", {42: levels[0], 43: levels[0] + 0.02, 44: levels[0] + 0.01})
    page_one = said(open_app(monkeypatch, tmp_path))
    app = open_app(monkeypatch, tmp_path, view="compare_view")
    names = app.multiselect(key="models").value
    first = names[0].partition("/")[2]
    assert page_one.startswith(f"## **{first}** leads"), "the first is whom page one names"
    assert app.selectbox(key="compare_suite").value == app_suite(monkeypatch, tmp_path)
    assert said(app).startswith(f"## Certain: {first}") or said(app).startswith(f"## {first}")
    (link,) = (code.value for code in app.code if "compare_suite=" in code.value)
    asked = {key: values[0] for key, values in parse_qs(link.partition("?")[2]).items()}
    assert asked["models"].split("\x1f") == names
    assert (
        open_app(monkeypatch, tmp_path, view="compare_view", **asked).selectbox(key="compare_suite").value
        == (asked["compare_suite"])
    )
    other = open_app(monkeypatch, tmp_path, view="compare_view", models="\x1f".join(names[::-1]))
    assert other.selectbox(key="compare_suite").value == "all", "another question is asked of all tasks"


def test_of_a_pair_not_told_apart_compare_gives_effect_and_interval(monkeypatch, tmp_path):
    for model, scores in (("org/one", (0.60, 0.66, 0.63)), ("org/two", (0.64, 0.61, 0.63))):
        for task in ("bc5cdr", "gad"):
            save_runs(tmp_path, model, task, dict(zip((42, 43, 44), scores, strict=True)))
    app = open_app(monkeypatch, tmp_path, view="compare_view", models="org/one\x1forg/two", compare_suite="en")
    assert said(app) == "## No difference is shown between one and two."
    (effect,) = (text.value for text in app.text if text.value.startswith("A − B on these tasks: "))
    low, difference, high = (float(effect.split()[at].rstrip(".")) for at in (-3, 6, -1))
    assert low < difference < high
    assert low < 0 < high


def app_suite(monkeypatch, folder):
    """The suite that page one opens with."""
    return open_app(monkeypatch, folder).selectbox(key="suite").value


def test_the_average_is_asked_for_where_it_plays_a_part_and_kept_elsewhere(monkeypatch, tmp_path):
    save_needle(tmp_path, "org/a", 1024, 0.9)
    app = open_app(monkeypatch, tmp_path, view="needle_view", average="micro")
    assert "average" not in [radio.key for radio in app.sidebar.radio]
    assert app.session_state["average"] == "micro"
    assert "average" in [radio.key for radio in open_app(monkeypatch, tmp_path, average="micro").sidebar.radio]


def test_the_task_view_shows_samples_where_it_may(monkeypatch, tmp_path):
    monkeypatch.setenv("BIOBENCH_DATA_DIR", str(tmp_path / "nothing"))
    for task, told in (("bc5cdr", "not at hand"), ("deid", "agreement")):
        app = open_app(monkeypatch, tmp_path, view="task_view", task=task)
        assert not bodies(app), "on demand alone"
        app.toggle(key=f"samples_{task}").set_value(True).run()
        assert not app.exception
        assert told in app.info[0].value


@pytest.mark.real
def test_samples_are_the_corpus(monkeypatch, tmp_path, data_dir):
    monkeypatch.setenv("BIOBENCH_DATA_DIR", str(data_dir))
    app = open_app(monkeypatch, tmp_path, view="task_view", task="bc5cdr")
    app.toggle(key="samples_bc5cdr").set_value(True).run(timeout=60)
    documents = load_data(load_task("bc5cdr"), data_dir).train[:3]
    assert len(bodies(app)) == 3
    for body, document in zip(bodies(app), documents, strict=True):
        assert html.escape(document.id) in body
        assert f'title="{document.spans[0].label}: right"' in body


def test_a_sample_is_escaped_and_bounded():
    text = "<script>alert(1)</script> fever " + "x" * 5000
    held = Document("<b>", "g", text, "train", spans=(Span(26, 31, "<i>"),), labels=("a&b",))
    shown = sample(held, most=100)
    parser = Cells()
    parser.feed(shown)
    assert parser.tags <= {"div", "small", "p", "span", "b"}
    assert "fever</span>" in shown
    assert "&lt;i&gt;, a&amp;b" in shown
    assert "x" * 100 not in shown
