"""Starting the app from the command line."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

from biobench.errors import UsageError

RESULTS_VARIABLE = "BIOBENCH_RESULTS_DIR"
"""Environment variable that tells the app which results folder to show."""
PRETRAINING_VARIABLE = "BIOBENCH_PRETRAINING_DIR"
"""The same for the folder of pretraining runs."""


def command(port: int) -> list[str]:
    """The command line of the app's server on this machine."""
    return [
        *(sys.executable, "-m", "streamlit", "run", str(Path(__file__).resolve().parent / "app.py")),
        *("--server.port", str(port)),
        # the app opens in whatever browser the reader likes, and asks for no e-mail address
        *("--server.headless", "true"),
        *("--server.fileWatcherType", "none"),
        *("--browser.gatherUsageStats", "false"),
        *("--client.toolbarMode", "minimal"),
        *("--theme.light.primaryColor", "#0072B2"),
        # light enough for a dark ground, dark enough for the white letters on it
        *("--theme.dark.primaryColor", "#1A80BF"),
    ]


def launch(results_dir: str | Path, port: int, pretraining_dir: str | Path | None = None) -> int:
    """Serve the app until it is interrupted; gives its exit status. Raises UsageError for a bad folder or port.

    pretraining_dir: where the runs of the pretraining view lie; `pretraining` in the results folder without one.
    """
    folder = Path(results_dir)
    if pretraining_dir is not None and not Path(pretraining_dir).is_dir():
        raise UsageError(f"'{pretraining_dir}' is not a folder", hint="give a folder of runs with --pretraining-dir")
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"'{folder}' is not a folder", hint="give a results folder with --results-dir")
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("", port))
        except OSError as error:
            raise UsageError(f"port {port} cannot be used: {error.strerror}", hint="choose another --port") from error
    environment = os.environ | {RESULTS_VARIABLE: str(folder.resolve())}
    if pretraining_dir is not None:
        environment[PRETRAINING_VARIABLE] = str(Path(pretraining_dir).resolve())
    try:
        return subprocess.run(command(port), env=environment, check=False).returncode
    except KeyboardInterrupt:
        return 0
