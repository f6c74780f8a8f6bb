"""A parent that has imported everything once and starts `biobench` processes by fork.

Reads one JSON list of arguments a line: [stdout file, stderr file, argument, ...]; answers with the process id
of the child; a child's end is reported as `pid status` (negative: the signal). It runs no torch operation
itself, so that the children begin as a new process would, four seconds of imports later.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import traceback

import transformers  # noqa: F401  (the cost of every start)

import biobench.finetune.engine
import biobench.runs.api  # noqa: F401
from biobench.cli.main import main


def child(out: str, err: str, arguments: list[str]) -> None:
    """Become `biobench ARGUMENTS`; does not return."""
    for number, name in ((1, out), (2, err)):
        file = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        os.dup2(file, number)
    sys.argv = ["biobench", *arguments]
    status = 70
    try:
        main()
    except SystemExit as ended:
        status = int(ended.code or 0)
    except BaseException:  # as the interpreter would at the end, which this process does not reach
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def report(pid: int) -> None:
    """Wait for a child and say how it ended."""
    _, status = os.waitpid(pid, 0)
    sys.stdout.write(f"{pid} {os.waitstatus_to_exitcode(status)}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    for line in sys.stdin:
        out, err, *arguments = json.loads(line)
        pid = os.fork()
        if pid == 0:
            child(out, err, arguments)
        sys.stdout.write(f"{pid}\n")
        sys.stdout.flush()
        threading.Thread(target=report, args=(pid,), daemon=True).start()
