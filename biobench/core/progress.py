"""Progress: bars on a terminal, plain lines otherwise; always on stderr, so that stdout stays the
product.
"""

from __future__ import annotations

from rich.console import Console
from rich.progress import Progress, ProgressColumn

QUIET = 60.0
"""Without a terminal, what is under way and has only counted on says so at most this often
(seconds).
"""


class ProgressNote(str):
    """What is happening in long work, and worth a line that stays."""

    __slots__ = ()


class Display:
    """The bars, with these columns, or the lines. bar: None where there is no terminal."""

    def __init__(
        self, *columns: str | ProgressColumn, transient: bool = False, expand: bool = False
    ) -> None:
        self.console = Console(stderr=True)
        self.bar: Progress | None = None
        if self.console.is_terminal:
            self.bar = Progress(*columns, console=self.console, transient=transient, expand=expand)
            self.bar.start()

    def say(self, line: str) -> None:
        """A line of its own, above the bars."""
        self.console.print(line, markup=False, highlight=False, soft_wrap=True)

    def close(self) -> None:
        """Take the bars away."""
        if self.bar is not None:
            self.bar.stop()


def about(seconds: float) -> str:
    """An estimate for people: about 45 s; or, of what nobody waits for, under a second."""
    return f"about {in_words(seconds)}" if seconds >= 1 else "under a second"


def in_words(seconds: float) -> str:
    """For people: 45 s, 12 min, 3 h 20 min."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"
