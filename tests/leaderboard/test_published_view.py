"""The views that show published experiments and the deviations from the compared protocol."""

from __future__ import annotations

from test_app import open_app

from biobench.data.catalog import load_task
from biobench.report.results import load


def test_the_published_view_shows_every_experiment_and_the_baselines_without_values(monkeypatch, tmp_path):
    app = open_app(monkeypatch, tmp_path, view="published_view")
    held = {p.source: p for p in load(tmp_path).experiments}
    box = app.selectbox(key="publication")
    assert list(box.options) == list(held)
    for source, publication in held.items():
        box.set_value(publication.id).run()
        assert not app.exception
        titles = [s.value.replace("\\", "") for s in app.header]
        assert titles[: len(publication.experiments)] == [e.title for e in publication.experiments]
        for table, experiment in zip(app.table, publication.experiments, strict=True):
            cells = [[cell.replace("\\", "") for cell in row] for row in table.value.to_numpy().tolist()]
            assert cells == [experiment.cells(line) for line in experiment.lines]
        texts = " ".join(t.value for t in app.text)
        assert source in texts
        assert all(f"{a.model}: no published values" in texts for a in publication.without_values)
    assert any(p.without_values for p in held.values())


def test_the_task_view_lists_the_deviations(monkeypatch, tmp_path):
    app = open_app(monkeypatch, tmp_path, view="task_view")
    app.selectbox(key="task").set_value("jnlpba").run()
    assert any("Deviations" in e.label for e in app.expander)
    texts = " ".join(t.value for t in app.text)
    assert all(d.compared in texts for d in load_task("jnlpba").spec.deviations)
