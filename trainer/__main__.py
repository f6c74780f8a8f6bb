"""``python -m trainer pretrain RECIPE``: the entry for torchrun and accelerate launch."""

from __future__ import annotations

import argparse
import sys

from biobench.errors import BioBenchError
from trainer import api


def main(arguments: list[str] | None = None) -> int:
    """Run a recipe; returns the exit status (0 done, 2 bad input, 75 stopped and saved)."""
    parser = argparse.ArgumentParser(prog="python -m trainer", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    train = commands.add_parser("pretrain", help="run a recipe")
    train.add_argument("recipe", help="path, or the name of a shipped recipe")
    train.add_argument("--out", help="folder of the run (default runs/NAME)")
    train.add_argument("--resume", action="store_true", help="continue the run in that folder")
    train.add_argument("--set", dest="overrides", action="append", default=[], metavar="KEY=VALUE")
    train.add_argument("--quiet", action="store_true", help="report no progress")
    given = parser.parse_args(arguments)
    try:
        result = api.pretrain(
            given.recipe,
            out=given.out,
            resume=given.resume,
            overrides=given.overrides,
            progress="none" if given.quiet else "auto",
        )
    except BioBenchError as error:
        print(f"{error}\nhint: {error.hint}", file=sys.stderr)
        return 2
    return api.PREEMPTED_EXIT if result.status == "preempted" else 0


if __name__ == "__main__":
    sys.exit(main())
