"""`biobench`: every command, and the one place where errors become a line and an exit status.

Exit status: 0 done; 1 some run failed; 2 the input was wrong; 130 Ctrl-C. Heavy imports stay inside
the commands.
"""

from __future__ import annotations

import errno
import os
import signal
import sys
import traceback
from types import FrameType
from typing import Annotated

import typer

from biobench.cli.commands import Commands
from biobench.core.threads import prepare_threads
from biobench.errors import BioBenchError, visible

_CommandLineError: type[Exception] = typer.BadParameter.__mro__[1]
"""Unknown options, missing arguments and bad values; typer names only this subclass of it in
public.
"""

INTERRUPTED = 130
"""Exit status after Ctrl-C, 128 and the signal's number, as shells have it."""

_FULL = (errno.ENOSPC, errno.EDQUOT)
_NO_MEMORY = "failed to map segment"
"""What the system's linker says of a library for which there is no address space."""
_OF_A_NAME = (errno.ENAMETOOLONG, errno.ELOOP, errno.EACCES, errno.EPERM)
"""The system's errors of a file's name: too long, a loop of links, or not for this user."""

app = typer.Typer(
    name="biobench",
    cls=Commands,
    help="Judge biomedical encoders: fine-tune any checkpoint on French and English tasks, "
    "compare honestly.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback(invoke_without_command=True)
def _root(
    version: Annotated[bool, typer.Option("--version", help="Print the version and stop.")] = False,
) -> None:
    if version:
        from biobench.version import __version__

        typer.echo(__version__)
        raise typer.Exit


class _Interrupts:
    """Ctrl-C as Python has it, and remembered: some libraries make an error of their own of the
    exception.
    """

    came = False

    def __call__(self, signum: int, frame: FrameType | None) -> None:
        self.came = True
        signal.default_int_handler(signum, frame)


def _in_words(error: Exception) -> str | None:
    """What is printed of an input error, with its hint; None for an error that is the program's own
    fault.
    """
    if isinstance(error, BioBenchError):
        return f"{error}\nhint: {error.hint}\n"
    if isinstance(error, OSError):
        if error.errno in _FULL:
            hint = "free space, or write elsewhere"
        elif error.errno in _OF_A_NAME and error.filename is not None:
            hint = "check the name, and whether you may read it"
        else:
            return None
        problem = f"{error.filename or 'the output'}: {error.strerror}"
        return f"{visible(problem)}\nhint: {hint}\n"
    if isinstance(error, ImportError) and _NO_MEMORY not in str(error):
        return None
    if isinstance(error, MemoryError | ImportError):
        return "memory does not suffice\nhint: allow more (`ulimit -v`), or use another machine\n"
    message: str = error.format_message()  # type: ignore[attr-defined]
    if type(error).__name__ == "NoArgsIsHelpError":  # the message is the help
        return f"{message}\n".lstrip("\n")
    context = getattr(error, "ctx", None)
    command = "biobench" if context is None else context.command_path
    message = message.replace(": Value error, ", ": ", 1)  # words of the library that checks types
    return f"{visible(message)}\nhint: see `{command} --help`\n"


def main() -> None:
    """Entry point of the console script. `--debug` anywhere shows the traceback of an input
    error."""
    debug = "--debug" in sys.argv
    if debug:
        sys.argv.remove("--debug")
    interrupts, handler = _Interrupts(), signal.getsignal(signal.SIGINT)
    # a background job of a shell ignores Ctrl-C, and goes on doing so
    if handler is signal.default_int_handler:
        signal.signal(signal.SIGINT, interrupts)
    try:
        prepare_threads()
        # Outside standalone mode typer gives back the status of `raise typer.Exit` and leaves
        # errors to us.
        status = app(standalone_mode=False) or 0
        sys.stdout.flush()
        sys.exit(status)
    except BrokenPipeError:
        # The reader of our output (head, less) is gone; that is no error.
        sys.stderr.close()
        sys.exit(0)
    except (_CommandLineError, BioBenchError, OSError, MemoryError, ImportError) as error:
        words = _in_words(error)
        if words is None:
            raise
        if debug:
            traceback.print_exc()
        sys.stderr.write(words)
        # else the interpreter tries once more when it ends
        if isinstance(error, OSError) and error.errno in _FULL:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(2)
    except KeyboardInterrupt:
        # Ctrl-C before a command has begun, while the parser is made; within one typer gives this
        # status itself.
        sys.exit(INTERRUPTED)
    except Exception:
        if interrupts.came:
            sys.exit(INTERRUPTED)
        raise
    finally:
        signal.signal(signal.SIGINT, handler)
