"""Starting the app from the command line."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from biobench.data.catalog import load_task
from biobench.data.locate import ENVIRONMENT as DATA_VARIABLE
from biobench.errors import UsageError
from biobench.submission.unpack import UPLOAD_BYTES

RESULTS_VARIABLE = "BIOBENCH_RESULTS_DIR"
"""Environment variable that tells the app which results folder to show."""
PRETRAINING_VARIABLE = "BIOBENCH_PRETRAINING_DIR"
"""The same for the folder of pretraining runs."""
TASKS_VARIABLE = "BIOBENCH_TASKS"
"""YAML files of own tasks, joined as in PATH."""
PUBLIC_VARIABLE = "BIOBENCH_PUBLIC"
"""Set where the app listens to other machines: its readers cannot run a command on the server."""


def is_public() -> bool:
    """Whether the app is served to others."""
    return os.environ.get(PUBLIC_VARIABLE) == "1"


def own_tasks() -> dict[str, Path]:
    """The own tasks that the command named: id to YAML file."""
    named = os.environ.get(TASKS_VARIABLE, "").split(os.pathsep)
    return {load_task(path).spec.id: Path(path) for path in filter(None, named)}


HERE = "127.0.0.1"
"""The address that only this machine reaches: whoever reaches the app reads results, and texts of
corpora at hand.
"""
HERE_NAMES = (HERE, "localhost", "::1")
CLOSED_SECONDS = 15


def command(port: int, host: str = HERE) -> list[str]:
    """The command line of the app's server on this machine. host: the address that it listens
    on."""
    words = [
        sys.executable,
        "-m",
        "streamlit",
        "run",
        str(Path(__file__).resolve().with_name("app.py")),
    ]
    options = {
        "server.port": port,
        "server.address": host,
        # the app opens in whatever browser the reader likes, and asks for no e-mail address
        "server.headless": "true",
        "server.fileWatcherType": "none",
        "browser.gatherUsageStats": "false",
        "client.toolbarMode": "minimal",
        # a pack has at most this size; the server would keep 200 MB of each request in memory
        "server.maxUploadSize": UPLOAD_BYTES // 2**20,
        # uploads of closed pages stay in memory this long
        "server.disconnectedSessionTTL": CLOSED_SECONDS,
        # eleven scores with their intervals stand beside a name on 1,280 pixels
        "theme.baseFontSize": 14,
        "theme.light.primaryColor": "#0072B2",
        # the names of pinned columns are drawn at 60% of it
        "theme.light.textColor": "#000000",
        # light enough for a dark ground, dark enough for the white letters on it
        "theme.dark.primaryColor": "#1776B0",
    }
    for option, value in options.items():
        words += [f"--{option}", str(value)]
    if host in HERE_NAMES:
        # a name elsewhere that is made to mean this machine would let its pages read what is shown
        # here
        for name in HERE_NAMES:
            words += ["--server.allowedHosts", name]
    return words


def _check_address(host: str, port: int) -> None:
    """Raises UsageError where this machine cannot listen there."""
    try:
        family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except (OSError, UnicodeError) as error:
        hint = "choose another --port"
        if host != HERE:
            hint += ", or an address of this machine as --host"
        reason = getattr(error, "strerror", None) or error
        raise UsageError(f"port {port} of {host} cannot be used: {reason}", hint=hint) from error


def launch(
    results_dir: str | Path,
    port: int,
    pretraining_dir: str | Path | None = None,
    host: str = HERE,
    data_dir: str | Path | None = None,
    tasks: Sequence[str | Path] = (),
) -> int:
    """Serve the app until it is interrupted. Raises UsageError for a bad folder or address.

    On POSIX this process becomes the server; elsewhere the server's exit status is given.

    pretraining_dir: where the runs of the pretraining view lie; `pretraining` in the results folder
    without one.
    data_dir: where the corpora lie whose texts are shown. tasks: YAML files of own tasks; SpecError
    where one is wrong.
    """
    if pretraining_dir is not None and not Path(pretraining_dir).is_dir():
        raise UsageError(
            f"'{pretraining_dir}' is not a folder",
            hint="give a folder of runs with --pretraining-dir",
        )
    # one that is not there yet is shown empty
    if Path(results_dir).exists() and not Path(results_dir).is_dir():
        raise UsageError(
            f"'{Path(results_dir)}' is not a folder",
            hint="give a results folder with --results-dir",
        )
    _check_address(host, port)
    for path in tasks:
        load_task(path)
    folders = {
        RESULTS_VARIABLE: results_dir,
        PRETRAINING_VARIABLE: pretraining_dir,
        DATA_VARIABLE: data_dir,
    }
    environment = dict(os.environ)
    for variable, named in folders.items():
        if named is not None:
            environment[variable] = str(Path(named).resolve())
    if host not in HERE_NAMES:
        environment[PUBLIC_VARIABLE] = "1"
    if tasks:
        environment[TASKS_VARIABLE] = os.pathsep.join(str(Path(path).resolve()) for path in tasks)
    words = command(port, host)
    if os.name == "posix":
        sys.stdout.flush()
        sys.stderr.flush()
        # the command becomes the server, so that whatever ends the one, a SIGKILL too, ends the
        # other
        os.execve(words[0], words, environment)
    try:
        return subprocess.run(words, env=environment, check=False).returncode
    except KeyboardInterrupt:
        return 0
