"""`python -m biobench` and the console script: the command line."""

from __future__ import annotations

import sys

_INTERRUPTED = 130
"""Exit status after Ctrl-C, as in `biobench.cli.main`, which may not be imported by then."""


def main() -> None:
    """Run the command line; Ctrl-C while it is imported ends without a traceback, too."""
    try:
        from biobench.cli.main import main as command
    except KeyboardInterrupt:
        sys.exit(_INTERRUPTED)
    command()


if __name__ == "__main__":
    main()
