"""`tasks new` says what it took the data for, and refuses what it would take for something else."""

from __future__ import annotations

from pathlib import Path

from tests.helpers.cli_make import Run


def test_columns_are_named_and_an_edited_spec_is_counted_again(biobench: Run, tmp_path: Path) -> None:
    rows = [f"{i}\tA note on patient {i} of the ward.\t{'a;b' if i % 3 else 'b'}\tp{i // 2}" for i in range(40)]
    (tmp_path / "ward").mkdir()
    (tmp_path / "ward" / "all.tsv").write_text("no\tnote\tkinds\twho\n" + "\n".join(rows) + "\n", encoding="utf-8")
    options = ("--text", "note", "--label", "kinds", "--group", "who", "--language", "de", "--separator", ";")
    biobench("tasks", "new", "ward/all.tsv", "--id", "ward", *options).ok()
    spec = (tmp_path / "ward.yaml").read_text(encoding="utf-8")
    assert "language: de" in spec
    assert "columns: {text: note, label: kinds, group: who}" in spec
    assert "labels: [a, b]" in spec
    (tmp_path / "ward.yaml").write_text(spec.replace("[0.8, 0.1, 0.1]", "[0.6, 0.2, 0.2]"), encoding="utf-8")
    assert biobench("tasks", "validate", "ward.yaml", "--data-dir", ".").status == 2
    biobench("tasks", "validate", "ward.yaml", "--data-dir", ".", "--recount").ok()
    counted = (tmp_path / "ward.yaml").read_text(encoding="utf-8")
    assert "train: {documents: 24" in counted
    assert counted.count("counts:") == 1
    biobench("tasks", "validate", "ward.yaml", "--data-dir", ".").ok()
