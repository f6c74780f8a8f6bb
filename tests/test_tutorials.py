"""The tutorials and the documentation site: every command that is marked to run runs, in order, in an empty folder."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
TUTORIALS = sorted((ROOT / "docs" / "tutorials").glob("*.md"))


def blocks(page: Path) -> list[str]:
    """The shell blocks that follow `<!-- run -->`."""
    return re.findall(r"^<!-- run -->\n```bash\n(.+?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", TUTORIALS, ids=lambda p: p.stem)
def test_a_tutorial_runs_as_written(page: Path, tmp_path: Path) -> None:
    environment = {k: v for k, v in os.environ.items() if not k.startswith("BIOBENCH_")}
    environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment |= {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    found = blocks(page)
    assert found, f"{page.name} has no block to run"
    for block in found:
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", block],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        assert done.returncode == 0, f"{block}\n{done.stdout}\n{done.stderr}"
        assert "Traceback" not in done.stderr


@pytest.mark.parametrize("page", sorted((ROOT / "docs" / "notebooks").glob("*.ipynb")), ids=lambda p: p.stem)
def test_a_notebook_runs_from_top_to_bottom(page: Path, tmp_path: Path) -> None:
    """Its code cells as one program, in an empty folder, in a process of its own."""
    cells = json.loads(page.read_text(encoding="utf-8"))["cells"]
    code = "\n\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
    assert code
    environment = {k: v for k, v in os.environ.items() if not k.startswith("BIOBENCH_")}
    environment |= {"PYTHONPATH": str(ROOT), "BIOBENCH_RESULTS": str(ROOT / "results"), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-W", "error::UserWarning:biobench", "-c", code],
        cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "it/s" not in done.stderr, "bars of libraries in a notebook"


@pytest.mark.skipif(find_spec("mkdocs") is None, reason="the docs extra is not installed")
def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--site-dir", str(tmp_path / "site")]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    listed = (tmp_path / "site" / "llms.txt").read_text(encoding="utf-8").splitlines()[4:]
    assert len(listed) > 50
    for line in listed:
        match = re.fullmatch(r"- \[[^]]+\]\(([^)]+)\): \S.*", line)
        assert match, line
        assert (tmp_path / "site" / match[1]).is_file()
    for task in (p.stem for language in ("en", "fr", "needle") for p in (ROOT / "tasks" / language).glob("*.yaml")):
        page = (tmp_path / "site" / "tasks" / f"{task}.html").read_text(encoding="utf-8")
        assert "Recipe" in page
    options = (tmp_path / "site" / "reference" / "cli.html").read_text(encoding="utf-8")
    assert all(option in options for option in ("--train-fraction", "--results-dir", "--against-first"))
