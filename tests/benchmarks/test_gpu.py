"""The script for a GPU machine: a step in trouble costs no other, and what is done stays done."""

from __future__ import annotations

import json
import os
import re
import select
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import typer

from tests.benchmarks.gpu import __main__ as script
from tests.benchmarks.gpu import steps
from tests.benchmarks.gpu.setting import RESULTS, Setting
from tests.benchmarks.gpu.steps import STEPS, Step, run_steps, table

ROOT = Path(__file__).resolve().parents[2]
ROWS = """
def measurements(setting):
    yield "first", lambda: {"ms": 1.0}
"""
BROKEN = "    raise ValueError('no such card')\n"
RAISES = """
import torch, weakref
models = []
def fails():
    model = torch.nn.Linear(2, 2)
    models.append(weakref.ref(model))
    raise torch.OutOfMemoryError("the card is full")
def measurements(setting):
    yield "fails", fails
    yield "later", lambda: {"freed": models[0]() is None}
"""
UNSOUND = """
def measurements(setting):
    yield "states", lambda: {"error": 0.5, "sound": False}
"""
ENDLESS = "    import signal\n    signal.pause()\n"


@pytest.fixture
def setting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Setting:
    """Folders of a call, whose steps may stand in the folder `modules`."""
    (tmp_path / "modules").mkdir()
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "modules"))
    return Setting("cuda", False, tmp_path / "out", tmp_path / "work")


def step(setting: Setting, name: str, source: str, seconds: float = 60) -> Step:
    """A step whose module has this source."""
    (setting.out.parent / "modules" / f"{name}.py").write_text(source)
    return Step(name, seconds, name)


def stored(setting: Setting) -> list[dict[str, Any]]:
    """The lines of the results."""
    return [json.loads(line) for line in (setting.out / RESULTS).read_text().splitlines()]


def test_a_step_that_fails_leaves_the_lines_of_the_others(setting: Setting) -> None:
    given = [
        step(setting, "before", ROWS),
        step(setting, "broken", ROWS + BROKEN),
        step(setting, "after", ROWS),
    ]
    lines = run_steps(given, setting, minutes=5)
    assert [line["status"] for line in stored(setting)] == ["done", "failed", "done"]
    assert list(lines.values()) == stored(setting)
    assert all(line["rows"] == [{"name": "first", "ms": 1.0}] for line in lines.values())
    assert lines["broken"]["output"][-1] == "ValueError: no such card"
    assert len(lines["broken"]["output"]) <= steps.OUTPUT_LINES
    assert "output" not in lines["after"]
    assert "broken: failed" in table(given, lines)
    assert "  first: ms 1.0" in table(given, lines)


def test_a_measurement_that_fails_leaves_the_rows_of_the_others_and_fails_the_step(
    setting: Setting,
) -> None:
    given = [step(setting, "raises", RAISES), step(setting, "unsound", UNSOUND)]
    lines = run_steps(given, setting, minutes=5)
    assert lines["raises"]["rows"] == [
        {"name": "fails", "error": "OutOfMemoryError: the card is full"},
        {"name": "later", "freed": True},
    ]
    assert [line["status"] for line in lines.values()] == ["failed", "failed"]


def test_a_step_over_its_limit_is_timed_out_and_keeps_its_rows(setting: Setting) -> None:
    lines = run_steps([step(setting, "endless", ROWS + ENDLESS, seconds=5)], setting, minutes=5)
    assert lines["endless"]["status"] == "timed out"
    assert lines["endless"]["rows"] == [{"name": "first", "ms": 1.0}]
    assert lines["endless"]["seconds"] < 30


def test_a_second_call_goes_on_and_only_repeats_what_is_named_and_not_done(
    setting: Setting,
) -> None:
    done, broken = step(setting, "done", ROWS), step(setting, "broken", BROKEN.lstrip())
    late = step(setting, "late", ROWS, seconds=600)
    run_steps([done, broken, late], setting, minutes=5)
    assert [line["status"] for line in stored(setting)] == ["done", "failed", "skipped"]
    assert stored(setting)[2]["reason"].startswith("its limit is 600 s and ")
    run_steps([done, broken, late], setting, minutes=11)
    assert [line["step"] for line in stored(setting)][3:] == ["late"]
    run_steps([done, broken, late], setting, minutes=5, only=["done", "broken"])
    assert [line["step"] for line in stored(setting)][4:] == ["broken"]


def test_a_step_that_is_named_alone_may_take_all_the_time_that_is_left(setting: Setting) -> None:
    slow = step(setting, "slow", ROWS, seconds=0.01)  # less than an interpreter takes to begin
    assert run_steps([slow], setting, minutes=5)["slow"]["status"] == "timed out"
    assert run_steps([slow], setting, minutes=5, only=["slow"])["slow"]["status"] == "done"


def test_a_line_that_a_kill_cut_off_costs_its_step_alone(setting: Setting) -> None:
    done, cut = step(setting, "done", ROWS), step(setting, "cut", ROWS)
    run_steps([done], setting, minutes=5)
    with (setting.out / RESULTS).open("a") as file:
        file.write('{"step": "cut", "sta')
    lines = run_steps([done, cut], setting, minutes=5)
    assert [line["status"] for line in lines.values()] == ["done", "done"]
    assert Setting("cuda", False, setting.out, setting.work).results() == lines


def test_a_call_that_is_asked_to_stop_ends_its_step(setting: Setting, tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    os.mkfifo(pid)
    source = f"import os\nopen({str(pid)!r}, 'w').write(str(os.getpid()))\n" + ROWS + ENDLESS
    given = step(setting, "endless", source)
    call = (
        "import sys\nfrom tests.benchmarks.gpu import __main__ as script\n"
        "from tests.benchmarks.gpu.steps import Step\n"
        f"script.STEPS = (Step('endless', 60, {given.module!r}),)\n"
        f"sys.argv[1:] = ['--out', {str(setting.out)!r}]\n"
        "script.typer.run(script.main)"
    )
    process = subprocess.Popen([sys.executable, "-c", call], cwd=ROOT, stderr=subprocess.PIPE)
    descriptor = os.pidfd_open(int(pid.read_text()))
    process.terminate()
    assert select.select([descriptor], [], [], 30)[0], "the step lives on"
    os.close(descriptor)
    assert process.communicate()[1].strip() == b"stopped"
    assert Setting("cuda", False, setting.out, setting.work).results() == {}


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ({"out": ROOT / "README.md" / "out"}, "Not a directory; give a folder"),
        ({"only": "machine,sed"}, "unknown step sed; there are machine, correct"),
        ({"device": "cpu"}, "--device cpu --tiny"),
    ],
)
def test_what_cannot_be_done_is_refused_before_a_step_runs(
    words: dict[str, Any], reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(script, "run_steps", lambda *_, **__: pytest.fail("a step ran"))
    with pytest.raises(typer.BadParameter, match=reason):
        script.main(**{"out": tmp_path, **words})


def test_what_a_step_started_ends_with_it(setting: Setting) -> None:
    source = (
        "import subprocess, sys\n"
        "def measurements(setting):\n"
        "    child = subprocess.Popen([sys.executable, '-c', 'import signal; signal.pause()'])\n"
        "    yield 'child', lambda: {'pid': child.pid}\n"
    )
    lines = run_steps([step(setting, "parent", source)], setting, minutes=5)
    with suppress(ProcessLookupError):  # it is gone already
        descriptor = os.pidfd_open(lines["parent"]["rows"][0]["pid"])
        assert select.select([descriptor], [], [], 30)[0], "it lives on"
        os.close(descriptor)


def test_the_proof_of_attention_refuses_a_kernel_that_reads_no_window(setting: Setting) -> None:
    """Random weights hide attention where they are small: the check must not be blind."""
    source = """
from biobench.core.attention import Kernel
from tests.benchmarks.gpu.attention_errors import fine_tuning_errors, pretraining_errors
from tests.benchmarks.gpu.material import BASE
from tests.helpers.kernels import torch_kernel_on_cpu

sound = torch_kernel_on_cpu().call

def deaf(*tensors, window_size=(-1, -1), **options):
    return sound(*tensors, **options)

def measurements(setting):
    for call in (sound, deaf):
        kernel = Kernel("torch", call)
        yield "fine-tuning", lambda k=kernel: fine_tuning_errors(setting, BASE, k)
        yield "causal", lambda k=kernel: pretraining_errors(setting, BASE, True, k)
"""
    tiny = Setting("cpu", True, setting.out, setting.work)
    lines = run_steps([step(setting, "proof", source)], tiny, minutes=10)
    rows = lines["proof"]["rows"]
    assert [row["sound"] for row in rows] == [True, True, False, False]
    assert min(rows[2]["plain states"], rows[3]["states"]) > 0.2


def test_flex_attention_sees_the_documents_and_windows_that_the_kernels_see() -> None:
    from tests.benchmarks.gpu.flex import flex_kernel
    from tests.helpers.kernels import reference

    rows = [torch.randn(150, 2, 16, generator=torch.Generator().manual_seed(i)) for i in range(3)]
    offsets = torch.tensor([0, 20, 25, 150], dtype=torch.int32)
    for window in ((-1, -1), (-1, 0), (6, 6), (6, 0)):
        states = flex_kernel().attend(*rows, offsets, 125, window=window)
        torch.testing.assert_close(states, reference(*rows, offsets, window, None))


def test_lengths_are_drawn_from_the_stored_quantiles() -> None:
    from tests.benchmarks.gpu.material import drawn_lengths

    file = ROOT / "tests" / "benchmarks" / "gpu" / "lengths.json"
    assert len(file.read_bytes()) <= 1024
    for corpus, content in json.loads(file.read_text()).items():
        lengths, quantiles = drawn_lengths(corpus, 4000, seed=1), content["quantiles"]
        assert quantiles == sorted(quantiles)
        assert np.median(lengths) == pytest.approx(quantiles[20], rel=0.05)
        assert quantiles[0] <= min(lengths) <= max(lengths) <= quantiles[-1]


def test_the_kernels_are_proved_on_many_words() -> None:
    from biobench.core.tokenizer import probe_ids
    from tests.benchmarks.gpu.material import words_tokenizer

    assert len(probe_ids(words_tokenizer(512))) > 10


def test_a_device_is_busy_where_spans_cover_it_and_overlaps_count_once() -> None:
    from tests.benchmarks.gpu.clock import covered

    assert covered([(0.0, 2.0), (1.0, 3.0), (1.5, 2.5), (5.0, 6.0)]) == 4.0
    assert covered([]) == 0.0


def commands(text: str) -> list[str]:
    """The commands of a text, one a line, without the breaks of lines."""
    joined = re.sub(r"\\\n\s*", "", text)
    lines = (line.strip() for line in joined.splitlines())
    return [line for line in lines if line.startswith(("pip ", "PYTHONPATH="))]


def test_the_page_and_the_script_name_the_same_commands_and_wheels_that_are_pinned() -> None:
    page = (ROOT / "docs" / "performance.md").read_text(encoding="utf-8")
    section = page.partition("## A GPU machine without a network")[2].partition("\n## ")[0]
    download, install, run = commands(script.__doc__ or "")
    assert [download, install, run] == commands(section)[:3]
    pins = (ROOT / "constraints.txt").read_text(encoding="utf-8")
    wheels = download.partition("build/wheels ")[2].split()
    assert len(wheels) == 6
    assert [name for name in wheels if f"\n{name}==" not in pins] == []
    assert all(f"| {step.name} | {step.seconds} s |" in section for step in STEPS)
