"""Small files of a run's folder."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from trainer.disk import write_json

BEGIN = """
import sys
from pathlib import Path
from biobench.core.files import temporary_name
for name in ("recipe.json", "other.json"):
    temporary_name(Path(sys.argv[1]) / name).write_text("{")
"""


def test_what_a_killed_process_left_of_a_file_goes_with_the_next_writing(tmp_path: Path) -> None:
    """Files of others stay: their own writing removes them."""
    subprocess.run([sys.executable, "-c", BEGIN, str(tmp_path)], check=True)
    assert len(list(tmp_path.glob(".recipe.json.*.tmp"))) == 1
    write_json(tmp_path / "recipe.json", {})
    assert sorted(p.name.split(".")[1] for p in tmp_path.glob(".*.tmp")) == ["other"]
    assert (tmp_path / "recipe.json").read_text() == "{}\n"
