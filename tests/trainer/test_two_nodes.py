"""Two launchers of one process each, as two nodes have them, train what one process trains."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

from trainer import api
from trainer.ledger import read_ledger
from trainer.train.progress import read_metrics


def test_two_nodes_train_what_one_process_does(small: list[str], tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    sets = [part for field in small for part in ("--set", field)]
    nodes = [
        subprocess.Popen(
            [
                *(sys.executable, "-m", "torch.distributed.run", "--nnodes", "2", "--node-rank", str(rank)),
                *("--nproc-per-node", "1", "--master-addr", "127.0.0.1", "--master-port", str(port)),
                *("-m", "trainer", "pretrain", "toy_detour", *sets, "--out", str(tmp_path / "two"), "--quiet"),
            ],
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    told = [node.communicate(timeout=240) for node in nodes]
    assert [node.returncode for node in nodes] == [0, 0], told[0][1][-3000:] + told[1][1][-3000:]
    held = read_ledger(tmp_path / "two")
    assert held.world_sizes == (2,)
    api.pretrain("toy_detour", out=tmp_path / "one", overrides=small, progress="none")
    assert api.ledger_diff(tmp_path / "one", tmp_path / "two").matched
    one, two = (
        [line["loss"] for line in read_metrics(tmp_path / name / "metrics.jsonl") if line["event"] == "train"]
        for name in ("one", "two")
    )
    assert len(one) == len(two) == 20
    assert max(abs(a - b) for a, b in zip(one, two, strict=True)) < 1e-4
