"""Commands in processes of their own that know the hub's address, its cache and the token from
their environment.

huggingface_hub reads these when it is imported: the warm process imports the large libraries that
do not know the hub.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tests.helpers.cli_make import Said
from tests.helpers.launching import Launcher

_BEFORE = (
    "numpy",
    "pandas",
    "pyarrow.parquet",
    "scipy.stats",
    "sklearn.metrics",
    "pydantic",
    "typer",
    "torch._dynamo",
)


def refusal(answer: Said) -> str:
    """The last line but the hint; before it stands what the hub's client says of its tries."""
    return Said(answer.status, answer.out, "\n".join(answer.err.splitlines()[-2:])).refusal()


class HubCommands:
    """Runs commands against one address of the hub. home: HF_HOME, the cache among it."""

    def __init__(self, address: str, home: Path) -> None:
        self.address, self.home = address, home
        self.launcher = Launcher(home, _BEFORE)

    def __call__(self, *arguments: str | Path, offline: bool = False, **more: str) -> Said:
        """`biobench ARGUMENTS` in a process of its own; as the first argument `-c` and Python code
        run that.
        """
        return self.several(arguments, offline=offline, **more)[0]

    def several(
        self, *commands: Sequence[str | Path], offline: bool = False, **more: str
    ) -> list[Said]:
        """Commands one after the other in one process, which spares seconds each.

        A first word `token=...` is the token of that command alone: the hub's client reads it with
        each request.
        """
        environment = {"HF_ENDPOINT": self.address, "HF_HOME": str(self.home), **more}
        if offline:
            environment["HF_HUB_OFFLINE"] = "1"
        self.home.mkdir(parents=True, exist_ok=True)
        child = self.launcher.several(commands, self.home, **environment)
        assert child.wait() in {0, 1, 2}
        return [child.said(number) for number in range(len(commands))]

    def close(self) -> None:
        """End the process that the commands are forked from."""
        self.launcher.close()
