"""Threads follow quotas and the user's own settings, and do not spin where others want the cores."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from biobench.core import threads


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """An environment without settings of threads, on four CPUs."""
    for name in ("OMP_NUM_THREADS", "OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME"):
        monkeypatch.setenv(name, "")  # restored after the test, whatever is set below
        monkeypatch.delenv(name)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2, 3})
    monkeypatch.setattr(threads, "cpu_quota", lambda: None)
    return monkeypatch


@pytest.mark.parametrize(
    ("load", "policy", "spins"), [(0.2, None, "1000"), (3.0, None, "1000"), (3.1, "PASSIVE", None)]
)
def test_waiting_threads_sleep_at_once_on_a_crowded_machine(
    bare: pytest.MonkeyPatch, load: float, policy: str | None, spins: str | None
) -> None:
    bare.setattr(os, "getloadavg", lambda: (load, 9.0, 9.0))
    assert threads.prepare_threads() == 4
    assert (os.environ.get("OMP_WAIT_POLICY"), os.environ.get("GOMP_SPINCOUNT")) == (policy, spins)


@pytest.mark.parametrize(("granted", "count"), [(0.5, 1), (1.0, 1), (1.5, 2), (64.0, 4)])
def test_a_quota_sets_the_number_and_the_waiting(bare: pytest.MonkeyPatch, granted: float, count: int) -> None:
    bare.setattr(os, "getloadavg", lambda: (0.0, 0.0, 0.0))
    bare.setattr(threads, "cpu_quota", lambda: granted)
    assert threads.prepare_threads() == count
    assert os.environ["OMP_WAIT_POLICY"] == "PASSIVE"


def test_the_users_own_settings_are_kept(bare: pytest.MonkeyPatch) -> None:
    bare.setattr(os, "getloadavg", lambda: (9.0, 9.0, 9.0))
    bare.setenv("OMP_NUM_THREADS", "3")
    bare.setenv("GOMP_SPINCOUNT", "77")
    assert threads.prepare_threads() == 3
    assert threads.prepare_threads(2) == 2, "--threads is asked for by name"
    assert (os.environ["OMP_NUM_THREADS"], os.environ["GOMP_SPINCOUNT"]) == ("2", "77")
    assert "OMP_WAIT_POLICY" not in os.environ


@pytest.mark.parametrize(
    ("own", "count", "kept"),
    [("3,2", 3, "3,2"), (" 2 ", 2, " 2 "), ("0", 4, "4"), ("-1", 4, "4"), ("many", 4, "4"), ("", 4, "4")],
)
def test_the_users_number_may_be_a_list_and_what_openmp_refuses_is_replaced(
    bare: pytest.MonkeyPatch, own: str, count: int, kept: str
) -> None:
    bare.setattr(os, "getloadavg", lambda: (0.0, 0.0, 0.0))
    bare.setenv("OMP_NUM_THREADS", own)
    assert threads.prepare_threads() == count
    assert os.environ["OMP_NUM_THREADS"] == kept


def test_one_cpu_in_the_affinity_is_one_thread(bare: pytest.MonkeyPatch) -> None:
    bare.setattr(os, "sched_getaffinity", lambda _: {3})
    bare.setattr(os, "getloadavg", lambda: (0.0, 0.0, 0.0))
    assert threads.prepare_threads() == 1


def test_a_machine_that_hides_its_load_counts_as_free(bare: pytest.MonkeyPatch) -> None:
    def hidden() -> tuple[float, float, float]:
        raise OSError("Load averages are unobtainable")

    bare.setattr(os, "getloadavg", hidden)
    bare.setattr(os, "cpu_count", lambda: 4)
    assert threads.prepare_threads() == 4
    assert os.environ["GOMP_SPINCOUNT"] == "1000"


def test_torch_obeys_what_was_prepared() -> None:
    code = (
        "import sys\nfrom biobench.core.threads import prepare_threads\n"
        "assert 'torch' not in sys.modules\nprepare_threads(1)\nimport torch\nprint(torch.get_num_threads())"
    )
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("OMP_", "GOMP_", "MKL_"))}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True)
    assert done.stdout.strip() == "1"


def test_a_loaded_torch_obeys_what_the_user_asks_for() -> None:
    """The option of a command that is called inside a process that has torch already."""
    code = (
        "import torch\nfrom biobench.core.threads import prepare_threads\n"
        "prepare_threads(3)\nprint(torch.get_num_threads())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "3"
