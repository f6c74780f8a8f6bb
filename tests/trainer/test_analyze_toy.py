"""The mechanism experiments as one script: trained, compared, scored, printed, and nothing done twice."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from biobench.cli.main import app
from biobench.errors import UsageError
from biobench.store import Store

HEADINGS = ("1. Pretraining", "2. Divergence", "3. Freezing", "4. Length of the decay", "5. Transplants")


def tables(printed: str) -> dict[str, list[str]]:
    """The lines below each heading."""
    places = [printed.index(heading) for heading in HEADINGS]
    parts = [printed[a:b] for a, b in zip(places, [*places[1:], len(printed)], strict=True)]
    return {h: part.splitlines()[1:] for h, part in zip(HEADINGS, parts, strict=True)}


def test_the_script_prints_its_tables_and_uses_again_what_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    command = ["analyze", "toy", "--out", "toy", "--tokens", "8000", "--seeds", "42-43", "--n", "10"]
    app(command, standalone_mode=False)
    first = tables(capsys.readouterr().out)
    cka = "\n".join(first["2. Divergence"])
    assert "ratio (debiased)" in cka
    assert all(re.search(rf"^ {where} ", cka, re.M) for where in ("0", "3", "low", "all"))
    freezing = "\n".join(first["3. Freezing"])
    assert freezing.count("layers 0-1 in detour") == freezing.count("layers 0-1 in decay") == 1
    assert freezing.count("layers 2 in detour") == 1
    decay = [line.split() for line in first["4. Length of the decay"][1:4]]
    assert [row[0] for row in decay] == ["33%", "100%", "200%"]
    transplants = first["5. Transplants"]
    assert sum("hybrid" in line and "toy/hybrids" in line for line in transplants) == 5
    # the decay table's middle row, the freeze table and the transplant table are about the same two models
    assert {decay[1][1], decay[1][2]} <= set(freezing.split())
    assert {decay[1][1], decay[1][2]} <= set("\n".join(transplants).split())
    for name in ("cka.svg", "cka.html", "freeze.png"):
        assert (tmp_path / "toy" / name).stat().st_size > 1000
    records, unreadable = Store(tmp_path / "toy" / "results").scan()
    assert not unreadable
    # detour, twin, three frozen, two decays of each, five hybrids
    assert len({r.model.hash for r in records}) == 14
    assert len(records) == 28
    app(command, standalone_mode=False)
    again = tables(capsys.readouterr().out)
    assert again["1. Pretraining"] == first["1. Pretraining"] == []
    for heading in HEADINGS[1:]:
        assert [x for x in again[heading] if "Done in" not in x] == [x for x in first[heading] if "Done in" not in x]
    assert len(Store(tmp_path / "toy" / "results").scan()[0]) == 28
    # runs of another length would be taken for those that were asked for
    with pytest.raises(UsageError, match=r"made with other settings: .*phases\.0\.tokens"):
        app([*command[:4], "--tokens", "9000", *command[6:]], standalone_mode=False)
    with pytest.raises(UsageError, match="--seeds"):
        app(["analyze", "toy", "--out", "other", "--seeds", "x"], standalone_mode=False)
    assert not (tmp_path / "other").exists()
