"""The demo's two encoders, made side by side: as one after the other, and stopped together."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from biobench.cli import demo
from biobench.errors import UsageError
from biobench.schema.checkpoint import content_hash

RECIPE = """extends: toy_detour
name: {name}
corpus: {{sources: [{{id: embedded, embedded: {{documents: 200}}}}], cache: {cache}}}
phases:
  - {{name: detour, objective: clm, tokens: {tokens}, schedule: {{shape: constant, warmup: 1k}}}}
  - {{name: decay, objective: mlm, masking: {{rate: 0.15}}, tokens: 8k, schedule: {{shape: 1-sqrt, final: 0.1}}}}
"""


@pytest.fixture
def recipes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Two short ones in place of the demo's."""
    made = {}
    for name, tokens in (("one", "8k"), ("two", "16k")):
        path = tmp_path / f"{name}.yaml"
        path.write_text(RECIPE.format(name=name, cache=tmp_path / "cache", tokens=tokens))
        made[name] = str(path)
    monkeypatch.setattr(demo, "RECIPES", made)
    return made


def test_side_by_side_they_are_as_one_after_the_other(recipes: dict[str, str], tmp_path: Path) -> None:
    beside, alone = (demo.pretrain_both(tmp_path / name, threads) for name, threads in (("beside", 2), ("alone", 1)))
    assert [p.relative_to(tmp_path).as_posix() for p in beside] == ["beside/one/one", "beside/two/two"]
    assert [p.relative_to(tmp_path).as_posix() for p in alone] == ["alone/one/one", "alone/two/two"]
    assert [content_hash(p) for p in beside] == [content_hash(p) for p in alone]


def test_what_the_process_beside_could_not_do_is_said_by_this_one(
    recipes: dict[str, str], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    recipes["two"] = str(tmp_path / "nowhere.yaml")
    with pytest.raises(UsageError, match="no recipe"):
        demo.pretrain_both(tmp_path / "out", 2)
    assert "Traceback" not in capfd.readouterr().err


def test_a_signal_stops_both_and_the_same_command_continues(recipes: dict[str, str], tmp_path: Path) -> None:
    for path in recipes.values():
        text = Path(path).read_text()
        Path(path).write_text(text.replace("tokens: 8k, schedule: {shape: c", "tokens: 2M, schedule: {shape: c"))
        Path(path).write_text(Path(path).read_text().replace("tokens: 16k", "tokens: 2M"))
    script = (
        "import sys; from pathlib import Path; from biobench.cli import demo; from biobench.core.threads import *;"
        f"prepare_threads(2); demo.RECIPES = {recipes!r};\n"
        "if __name__ == '__main__':\n"
        "    import typer\n"
        "    try: demo.pretrain_both(Path('out'), 2)\n"
        "    except typer.Exit as ended: sys.exit(ended.exit_code)\n"
    )
    (tmp_path / "script.py").write_text(script)
    started = subprocess.Popen([sys.executable, "script.py"], cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    curves = [tmp_path / "out" / name / "metrics.jsonl" for name in recipes]
    until = time.monotonic() + 120
    while not all(c.is_file() and c.stat().st_size > 0 for c in curves) and time.monotonic() < until:
        time.sleep(0.05)
    assert all(c.is_file() for c in curves), "both have begun"
    children = [
        int(p.name) for p in Path("/proc").iterdir() if p.name.isdecimal() and f"PPid:\t{started.pid}\n" in _status(p)
    ]
    assert children
    started.send_signal(signal.SIGTERM)
    _, err = started.communicate(timeout=60)
    assert started.returncode == 75, err
    assert "`biobench demo` continues" in err
    assert "Traceback" not in err
    while any(_lives(child) for child in children) and time.monotonic() < until:
        time.sleep(0.05)
    assert not any(_lives(child) for child in children)
    for name in recipes:
        assert [p for p in (tmp_path / "out" / name / "checkpoints").iterdir() if p.is_dir()], f"{name} was saved"


def _status(process: Path) -> str:
    try:
        return (process / "status").read_text()
    except OSError:
        return ""


def _lives(number: int) -> bool:
    return "State:\tZ" not in (status := _status(Path(f"/proc/{number}"))) and bool(status)
