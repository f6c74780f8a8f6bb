"""`python -m biobench`: the command line."""

from __future__ import annotations

from biobench.cli.main import main

if __name__ == "__main__":
    main()
