"""``python -m trainer pretrain RECIPE``: another name of ``biobench pretrain``, for launchers that want a module.

Both are one command, so a run is the same whichever way it was started: the same options, the benchmark's
documents kept out of the corpus by the same default. The trainer does not know the benchmark; it finds the
command as a shell does, by the script that the installed distribution declares.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.metadata import entry_points

COMMAND = "biobench"


def main(arguments: Sequence[str] | None = None) -> int:
    """Hand over to ``biobench pretrain`` and give its exit status (0 done, 2 bad input, 75 stopped and saved)."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words[:1] != ["pretrain"]:
        print("python -m trainer knows one command: pretrain\nhint: see `biobench pretrain --help`", file=sys.stderr)
        return 2
    script = next(iter(entry_points(group="console_scripts", name=COMMAND)), None)
    if script is None:
        print(
            f"the command {COMMAND} is not installed, by which the benchmark's documents are kept out of the corpus\n"
            "hint: install the project (`pip install -e .`) in the environment of this Python",
            file=sys.stderr,
        )
        return 2
    sys.argv = [COMMAND, *words]
    script.load()()
    return 0


if __name__ == "__main__":
    sys.exit(main())
