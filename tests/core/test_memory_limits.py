"""Under a memory limit work gets smaller or is refused in words; the kernel kills nobody. Allocations really fail."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from biobench.core import memory
from biobench.core.memory import free_memory_bytes, is_out_of_memory, within_the_limit
from tests.helpers.tiny import make_tiny_encoder

CPU = torch.device("cpu")
MIB = 1 << 20


def child(code: str, **environment: str) -> str:
    """What a Python process prints that runs `code`, on one thread."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        env={**os.environ, "OMP_NUM_THREADS": "1", **environment},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def test_allocations_that_fail_are_known_as_such() -> None:
    shown = child(f"""
        import numpy, pyarrow, torch
        from biobench.core.memory import is_out_of_memory, within_the_limit
        square = torch.ones(4000, 4000)
        with within_the_limit(torch.device("cpu"), left={256 * MIB}) as share:
            for take in (
                lambda: torch.empty(1 << 31),
                lambda: [square @ square for _ in range(9)],
                lambda: bytearray(1 << 31),
                lambda: numpy.empty(1 << 31),
                lambda: pyarrow.allocate_buffer(1 << 31),
            ):
                try:
                    take()
                except Exception as error:
                    print(type(error).__name__, is_out_of_memory(error))
        print(share, torch.empty(1 << 28).shape)
        """)
    *errors, end = shown.splitlines()
    assert errors[:3] == ["RuntimeError True", "RuntimeError True", "MemoryError True"]
    assert [line.split()[1] for line in errors] == ["True"] * 5
    assert end == f"{int(0.95 * 256 * MIB)} torch.Size([{1 << 28}])", "the bound ends with its block"


def test_other_errors_are_not_taken_for_memory() -> None:
    assert not is_out_of_memory(RuntimeError("shapes do not fit"))
    assert not is_out_of_memory(ValueError("not enough memory"))
    assert not is_out_of_memory(RuntimeError("could not create a primitive")), "without a bound it means another thing"
    assert not is_out_of_memory(None)


def test_no_bound_where_no_group_limits_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "memory_left", lambda: None)
    before = resource.getrlimit(resource.RLIMIT_DATA)
    with within_the_limit(CPU) as share:
        assert share is None
        assert resource.getrlimit(resource.RLIMIT_DATA) == before


def test_processes_share_what_is_left_and_a_users_own_bound_stays() -> None:
    shown = child("""
        import resource, torch
        from biobench.core.memory import within_the_limit
        cpu = torch.device("cpu")
        with within_the_limit(cpu, processes=4, left=4 << 30) as share:
            with within_the_limit(cpu, left=1 << 30) as inner:
                print(share, inner)
        print(resource.getrlimit(resource.RLIMIT_DATA)[0] == resource.RLIM_INFINITY)
        """)
    assert shown.split() == [str(int(0.95 * (1 << 30))), "None", "True"]


def test_free_memory_is_the_least_that_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    meminfo = tmp_path / "meminfo"
    meminfo.write_text("MemTotal:  9000 kB\nMemAvailable:  4000 kB\n")
    for left, free in ((None, 4000 * 1024), (5_000_000, 4000 * 1024), (1_000_000, 1_000_000), (0, 0)):
        monkeypatch.setattr(memory, "memory_left", lambda left=left: left)
        assert free_memory_bytes(CPU, meminfo) == free
    monkeypatch.setattr(memory, "memory_left", lambda: None)
    assert free_memory_bytes(CPU, tmp_path / "none") is None
    meminfo.write_text("MemTotal:  9000 kB\n")
    assert free_memory_bytes(CPU, meminfo) is None, "unknown is not nothing"


RUN = """
    import sys, torch
    from biobench.core import memory
    from biobench.runs.api import run_plan
    from biobench.runs.result import Reporter
    from biobench.runs.plan import RunRequest, make_plan
    from biobench.store import Store
    if (left := int(sys.argv[1])) >= 0:
        memory.memory_left = lambda: left or None
    request = RunRequest(model=sys.argv[2], tasks=["demo_topic"], seeds="1", results_dir=sys.argv[3], device="cpu",
        overrides=["training.epochs=1", "training.precision=fp32", "training.batch_size=256"], gate=False)
    for result in run_plan(make_plan(request), Reporter()):
        print(result.status, "|", result.reason)
    for record in Store(sys.argv[3]).records():
        print(record.training.micro_batch_tokens, [round(p.train_loss, 4) for p in record.training.curve])
"""


@pytest.fixture(scope="module")
def wide(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny encoder whose layers are wide, so that a micro-batch takes some hundred MiB."""
    from transformers import AutoTokenizer, BertConfig, BertModel

    folder = tmp_path_factory.mktemp("wide") / "encoder"
    tokenizer = AutoTokenizer.from_pretrained(make_tiny_encoder(tmp_path_factory.mktemp("tiny") / "tiny"))
    torch.manual_seed(1)
    config = BertConfig(
        vocab_size=len(tokenizer), hidden_size=128, num_hidden_layers=1, num_attention_heads=2,
        intermediate_size=8192, max_position_embeddings=128, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
    )  # fmt: skip
    BertModel(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def limited(left: int, model: Path, folder: Path) -> list[str]:
    code = textwrap.dedent(RUN)
    return child(f"import sys\nsys.argv[1:] = {[str(left), str(model), str(folder)]!r}\n{code}").splitlines()


def test_a_limit_leads_to_smaller_micro_batches_or_to_a_refusal_in_words(wide: Path, tmp_path: Path) -> None:
    free = limited(0, wide, tmp_path / "free")
    tight = limited(500 * MIB, wide, tmp_path / "tight")
    assert free[0] == tight[0] == "done | None"
    tokens, losses = (line.split(" ", 1) for line in (free[1], tight[1]))
    assert int(tokens[0]) == 8192
    assert 16 < int(losses[0]) < 8192, "the micro-batch was cut, the batch was not"
    ours, theirs = (float(x.strip("[]").split(",")[0]) for x in (tokens[1], losses[1]))
    assert ours == pytest.approx(theirs, rel=1e-3)
    for mib in (40, 90):
        end = limited(mib * MIB, wide, tmp_path / str(mib))[0]
        assert end.startswith("failed | ")
        assert "memory does not suffice" in end


@pytest.fixture
def group() -> Iterator[Path]:
    """A new control group for memory below that of this process, of version 1 or 2. Needs root."""
    lines = Path("/proc/self/cgroup").read_text().splitlines()
    for _, controllers, path in (line.split(":", 2) for line in lines):
        if controllers in ("memory", ""):
            folder = Path("/sys/fs/cgroup", controllers, path.lstrip("/"), f"biobench-{os.getpid()}")
            try:
                folder.mkdir()
            except OSError:
                continue
            if any((folder / name).exists() for name in LIMITS):
                yield folder
                folder.rmdir()
                return
            folder.rmdir()
    pytest.skip("no control group for memory can be made here")


LIMITS = ("memory.max", "memory.limit_in_bytes")


@pytest.mark.slow
def test_in_a_real_control_group_nobody_is_killed(wide: Path, tmp_path: Path, group: Path) -> None:
    limit = next(group / name for name in LIMITS if (group / name).exists())
    ends = {}
    for mib in (1100, 900, 800, 700, 600):
        limit.write_text(str(mib * MIB))
        code = textwrap.dedent(RUN)
        arguments = f"import sys\nsys.argv[1:] = {['-1', str(wide), str(tmp_path / str(mib))]!r}\n{code}"
        done = subprocess.run(
            ["sh", "-c", 'echo 0 > "$0/cgroup.procs" && exec "$@"', group, sys.executable, "-c", arguments],
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            capture_output=True,
            text=True,
            timeout=600,
        )
        print(f"{mib} MiB: status {done.returncode}, {done.stdout.strip()!r}")
        assert done.returncode == 0, (mib, done.stderr[-500:])
        ends[mib] = done.stdout.split(" ")[0]
    assert ends[1100] == "done"
    assert ends[600] == "failed"
