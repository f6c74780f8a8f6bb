"""Whether data are a release that the spec knows by its hash."""

from __future__ import annotations

from biobench.data.catalog import LoadedTask


def release_of(task: LoadedTask, source: str, data_hash: str) -> str | None:
    """The name of the known release of this source that has this hash; None where there is none."""
    return next((name for name, known in task.source(source).releases.items() if known == data_hash), None)


def release_problem(task: LoadedTask, source: str, data_hash: str) -> str | None:
    """One line where the spec knows releases of this source and the data are none of them.

    A task with overrides is not judged: a reader or split that was changed gives other documents from the same files.
    """
    releases = task.source(source).releases
    if not releases or task.overrides or release_of(task, source, data_hash) is not None:
        return None
    known = ", ".join(releases)
    return f"the documents (hash {data_hash[:16]}) differ from the release that the spec knows ({known})"
