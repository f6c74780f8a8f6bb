"""Commands in processes of their own that know the hub's address, its cache and the token from their environment.

huggingface_hub reads these when it is imported. So that a command does not start from nothing, one process imports
the large libraries that do not know the hub, and each command is a fork of it that imports the rest.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path

from tests.helpers.cli_make import Said

ROOT = Path(__file__).resolve().parents[2]
_OUT = ("status", "out", "err")
_BEFORE = ("numpy", "pandas", "pyarrow.parquet", "scipy.stats", "sklearn.metrics", "pydantic", "typer", "torch._dynamo")


def refusal(answer: Said) -> str:
    """The last line but the hint; before it stands what the hub's client says of its tries."""
    return Said(answer.status, answer.out, "\n".join(answer.err.splitlines()[-2:])).refusal()


class HubCommands:
    """Runs commands against one address of the hub. home: HF_HOME, the cache among it."""

    def __init__(self, address: str, home: Path) -> None:
        self.address, self.home = address, home
        plain = {k: v for k, v in os.environ.items() if not k.startswith(("HF_", "BIOBENCH_", "TRANSFORMERS_"))}
        plain |= {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT), "TOKENIZERS_PARALLELISM": "false"}
        self.environment = {k: v for k, v in plain.items() if not k.lower().endswith("_proxy")}
        self.server = subprocess.Popen(
            [sys.executable, "-m", "tests.helpers.hub_commands"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=self.environment,
            cwd=ROOT,
            text=True,
        )

    def __call__(self, *arguments: str | Path, offline: bool = False, **more: str) -> Said:
        """`biobench ARGUMENTS` in a process of its own; as the first argument `-c` and Python code run that."""
        return self.several(arguments, offline=offline, **more)[0]

    def several(self, *commands: Sequence[str | Path], offline: bool = False, **more: str) -> list[Said]:
        """Commands one after the other in one process, which spares seconds each.

        A first word `token=...` is the token of that command alone: the hub's client reads it with each request.
        """
        environment = {**self.environment, "HF_ENDPOINT": self.address, "HF_HOME": str(self.home), **more}
        if offline:
            environment["HF_HUB_OFFLINE"] = "1"
        self.home.mkdir(parents=True, exist_ok=True)
        assert self.server.stdin is not None
        assert self.server.stdout is not None
        wanted = {
            "commands": [[str(a) for a in arguments] for arguments in commands],
            "environment": environment,
            "folder": str(self.home),
        }
        self.server.stdin.write(json.dumps(wanted) + "\n")
        self.server.stdin.flush()
        assert int(self.server.stdout.readline()) == 0
        answers = []
        for number in range(len(commands)):
            texts = ((self.home / f"{number}.{name}").read_text(encoding="utf-8", errors="replace") for name in _OUT)
            status, out, err = texts
            answers.append(Said(int(status), out, err))
        return answers

    def close(self) -> None:
        """End the process that the commands are forked from."""
        assert self.server.stdin is not None
        assert self.server.stdout is not None
        self.server.stdin.close()
        self.server.wait(timeout=30)
        self.server.stdout.close()


def _serve() -> None:
    for name in _BEFORE:
        __import__(name)
    early = [name for name in sys.modules if name.split(".")[0] in ("huggingface_hub", "transformers", "datasets")]
    assert not early, f"{early[0]} would not see the command's environment"
    for line in sys.stdin:
        wanted = json.loads(line)
        child = os.fork()
        if not child:
            _run(wanted["commands"], wanted["environment"], Path(wanted["folder"]))
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


def _run(commands: Sequence[Sequence[str]], environment: dict[str, str], folder: Path) -> None:
    """The commands in this process, which ends with them."""
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    for number, arguments in enumerate(commands):
        for stream, name in enumerate(_OUT[1:], start=1):
            os.dup2(os.open(f"{number}.{name}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), stream)
        key, _, token = arguments[0].partition("=")
        os.environ.pop("HF_TOKEN", None)
        if key == "token":
            os.environ["HF_TOKEN"] = token
        status = _status(arguments[1:] if key == "token" else arguments)
        sys.stdout.flush()
        sys.stderr.flush()
        Path(f"{number}.status").write_text(str(status))
    os._exit(0)


def _status(arguments: Sequence[str]) -> int:
    try:
        if arguments[0] == "-c":
            exec(compile(arguments[1], "<code>", "exec"), {"__name__": "__main__"})
        else:
            from biobench.cli.main import main

            sys.argv = ["biobench", *arguments]
            main()
    except SystemExit as ended:
        return int(ended.code or 0)
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


if __name__ == "__main__":
    _serve()
