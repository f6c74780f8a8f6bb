"""Two starts with one folder: the second is told so, and the first is not disturbed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from biobench.errors import UsageError
from trainer import api
from trainer.train.run_folder import claimed

HOLD = """
import sys
from pathlib import Path
from trainer.train.run_folder import claimed
with claimed(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_folder_takes_one_process_at_a_time(small: list[str], tmp_path: Path) -> None:
    out = tmp_path / "run"
    other = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(out)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert other.stdout is not None
    assert other.stdout.readline() == "held\n"
    try:
        with pytest.raises(UsageError, match="another process is at work in") as caught:
            api.pretrain("toy_detour", out=out, overrides=small, progress="none")
        assert "--out DIR" in caught.value.hint
        assert [p.name for p in out.iterdir()] == [".lock"]
    finally:
        other.kill()
        other.communicate()
    with claimed(out):
        pass  # the system let go of it with the process
