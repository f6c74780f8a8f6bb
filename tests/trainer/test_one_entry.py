"""`python -m trainer pretrain` and `biobench pretrain` are one command; excluded documents reach no tokenizer."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from biobench.data.catalog import load_task
from biobench.data.load import load_data
from tests.helpers.generators import diamed
from trainer import __main__ as entry
from trainer.corpus.shards import tokenizer_hash
from trainer.ledger import read_ledger
from trainer.recipe.library import load_recipe
from trainer.train.start import tokenizer_for


def started(command: str, monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    """Exit status of ``biobench`` or ``python -m trainer`` with these arguments, in this process."""
    from biobench.cli.main import main

    monkeypatch.setattr(sys, "argv", [command, *arguments])
    with pytest.raises(SystemExit) as ended:
        main() if command == "biobench" else sys.exit(entry.main())
    return int(ended.value.code or 0)


@pytest.fixture
def recipe(small: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Arguments of a run whose text holds two documents of a task; its data lies in `data`."""
    # the generated needle documents, which are kept out too, take half a minute to write
    monkeypatch.setattr("biobench.data.catalog.list_tasks", lambda: [load_task("diamed")])
    monkeypatch.chdir(tmp_path)
    diamed(tmp_path / "data")
    leaked = [d.text for d in load_data(load_task("diamed"), tmp_path / "data").test[:2]]
    filler = [" ".join(f"w{i}x{j}" for j in range(60)) + "." for i in range(100)]
    lines = "".join(json.dumps({"text": text}) + "\n" for text in [*filler, *leaked])
    (tmp_path / "text.jsonl").write_text(lines, encoding="utf-8")
    fields = [*small, "phases.0.tokens=1536", "phases.1.tokens=1536", "corpus.sources=[{id: own, path: text.jsonl}]"]
    return ["pretrain", "toy_detour", "--quiet", "--data-dir", "data", *(p for f in fields for p in ("--set", f))]


def test_a_run_of_one_entry_is_resumed_by_the_other(
    recipe: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert started("python -m trainer", monkeypatch, *recipe, "--out", "run") == 0
    ledger = read_ledger("run")
    assert ledger.corpus.excluded_documents > 0
    assert "documents of diamed" in capsys.readouterr().err
    assert started("biobench", monkeypatch, *recipe, "--out", "run", "--resume") == 0
    assert started("python -m trainer", monkeypatch, *recipe, "--out", "open", "--no-exclude-tasks") == 0
    assert read_ledger("open").corpus.excluded_documents == 0


def test_one_process_of_many_speaks(
    recipe: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from biobench.workflows import decontamination

    monkeypatch.setenv("RANK", "1")
    monkeypatch.setattr(decontamination, "benchmark_documents", lambda data_dir, only: {})
    assert started("biobench", monkeypatch, *recipe, "--out", "run") == 0
    said = capsys.readouterr()
    assert said.out == ""
    assert "NOT guarded" not in said.err


def test_the_module_knows_one_command_and_says_when_it_is_not_installed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert entry.main(["report"]) == 2
    assert "hint: see `biobench pretrain --help`" in capsys.readouterr().err
    monkeypatch.setattr(entry, "entry_points", lambda **_: ())
    assert entry.main(["pretrain", "toy_detour"]) == 2
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 2
    assert "not installed" in said[0]


def test_no_tokenizer_is_trained_on_excluded_documents(tmp_path: Path) -> None:
    secret = " ".join(f"zyxwv{'abcdefghijklmnop'[i]}" for i in range(14))
    own = [f"Patient {i} was seen for cough and fever." for i in range(50)]
    (tmp_path / "all.lines").write_text("\n".join([*own, *[f"{secret} {i}" for i in range(30)]]) + "\n")
    (tmp_path / "own.lines").write_text("\n".join(own) + "\n")
    (tmp_path / "out.txt").write_text(secret)
    fields = [f"corpus.root={tmp_path}", "base.tokenizer.vocabulary=330"]

    def made(path: str, *more: str, exclude: tuple[str, ...] = ()) -> str:
        source = f"corpus.sources=[{{id: s, path: {path}, format: lines}}]"
        return tokenizer_hash(tokenizer_for(load_recipe("toy_detour", [*fields, source, *more]), exclude))

    clean = made("own.lines")
    assert made("all.lines") != clean
    assert made("all.lines", exclude=(secret,)) == clean
    assert made("all.lines", "corpus.exclude.files=[out.txt]") == clean
