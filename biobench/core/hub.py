"""The model hub's client: its errors as one line with a remedy, its patience, and what its cache
says a file is.
"""

from __future__ import annotations

import hashlib
import os
import re
import time
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, TypeVar

from biobench.core.text import first_line

T = TypeVar("T")
RepositoryKind = Literal["model", "dataset"]
_PATIENCE = 60.0
"""Seconds without a byte after which a request ends, unless HF_HUB_DOWNLOAD_TIMEOUT says otherwise.
"""
_BLOB = re.compile(r"(?:.*/)?blobs/([0-9a-f]{64}|[0-9a-f]{40})", re.DOTALL)
"""Where the cache's links lead, by what the hub announced."""
_BUSY = (429, 500, 502, 503, 504)
_LOGIN = "set HF_TOKEN or run `hf auth login`"


def client_errors() -> tuple[type[Exception], ...]:
    """What the client raises where something is wrong with the request, the network, the hub or its
    answer.
    """
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError

    # Its own error derives from its HTTP library's base error, whichever library that is; that one
    # is no OSError.
    transport: type[Exception] = HfHubHTTPError.__bases__[0]
    return (transport, HFValidationError, OSError)


def patiently(ask: Callable[[], T]) -> T:
    """What the hub's client gives, with `set_patience`, asked again after a few seconds where the
    hub is busy.

    The client itself does so for files, but not where it asks what a repository holds.
    """
    set_patience()
    for wait in (1.0, 4.0):
        try:
            return ask()
        except client_errors() as error:
            if _status_of(error) not in _BUSY and _status_of(error.__cause__) not in _BUSY:
                raise
        time.sleep(wait)
    return ask()


def _status_of(error: BaseException | None) -> int | None:
    """With which the hub answered; None where it did not."""
    response = getattr(error, "response", None)
    return getattr(response, "status_code", None)


def set_patience() -> None:
    """End requests of this process that bring nothing: of itself the client waits for some of them
    for ever.
    """
    from huggingface_hub import get_session

    hooks = get_session().event_hooks["request"]
    if _end_in_time not in hooks:
        hooks.append(_end_in_time)


def _end_in_time(request: Any) -> None:
    """Bounds each wait of a request that has no bound of its own."""
    from huggingface_hub import constants

    seconds = _PATIENCE
    if "HF_HUB_DOWNLOAD_TIMEOUT" in os.environ:
        seconds = constants.HF_HUB_DOWNLOAD_TIMEOUT
    waits = dict.fromkeys(("connect", "read", "write", "pool"), seconds)
    for name, wait in (request.extensions.get("timeout") or {}).items():
        if wait is not None:
            waits[name] = wait
    request.extensions["timeout"] = waits


def explain(
    error: BaseException, name: str, kind: RepositoryKind, revision: str | None
) -> tuple[str, str]:
    """(what is wrong with this repository, what to do), for one of the `client_errors`."""
    from huggingface_hub import errors as hub

    if isinstance(error, getattr(hub, "IncompleteSnapshotError", ())):  # older clients have none
        return (
            "only a part of it is in the cache",
            "run once with a network, without --offline and HF_HUB_OFFLINE",
        )
    if isinstance(error, hub.LocalEntryNotFoundError | hub.OfflineModeIsEnabled):
        cause = error.__cause__
        if getattr(cause, "response", None) is None:
            return _not_in_cache(kind, cause)
        assert cause is not None
        return explain(cause, name, kind, revision)
    response = getattr(error, "response", None)
    if response is None:
        return _unanswered(error)
    return _refused(error, response, name, kind, revision)


def _not_in_cache(kind: RepositoryKind, cause: BaseException | None) -> tuple[str, str]:
    """Of a file that the cache lacks. cause: why the hub did not give it; None: it was not
    asked."""
    from huggingface_hub.errors import OfflineModeIsEnabled

    absent = "it is not in the cache"
    if kind == "model":
        absent = "it is neither a local folder nor in the cache"
    reason = "the hub cannot be reached"
    if cause is None or isinstance(cause, OfflineModeIsEnabled):
        reason = "the hub was not asked (--offline or HF_HUB_OFFLINE)"
    return f"{absent}, and {reason}", "check the name, or download it where there is a network"


def _unanswered(error: BaseException) -> tuple[str, str]:
    """Of a request to which the hub gave no answer."""
    from huggingface_hub.errors import HFValidationError

    line = first_line(error)
    if isinstance(error, HFValidationError):
        return f"it is no repository's id: {line}", "an id is owner/name"
    if isinstance(error, OSError) and not isinstance(error, (ConnectionError, TimeoutError)):
        return line, "repeat the command: complete files are kept, this one is downloaded again"
    return f"the connection broke off: {line}", "check the network and run the same again"


def _refused(
    error: BaseException, response: Any, name: str, kind: RepositoryKind, revision: str | None
) -> tuple[str, str]:
    """Of a request that the hub answered with an error."""
    from huggingface_hub import constants
    from huggingface_hub import errors as hub

    page = f"{constants.ENDPOINT}/{name}"
    if kind == "dataset":
        page = f"{constants.ENDPOINT}/datasets/{name}"
    status = int(response.status_code)
    with_token = "authorization" in response.request.headers
    if isinstance(error, hub.GatedRepoError):
        if with_token:
            no_access = "it is gated, and the account of your token has no access"
            return no_access, f"ask for access at {page} with it"
        return "it is gated, and no token was sent", f"accept its terms at {page}, then {_LOGIN}"
    if isinstance(error, hub.RevisionNotFoundError):
        return f"it has no revision '{revision}'", f"name a branch, a tag or a commit of {page}"
    if isinstance(error, hub.RepositoryNotFoundError):
        reason = "is private, and no token was sent"
        if with_token:
            reason = "your token may not read it"
        return f"it does not exist, or {reason}", f"check the id; for a private one {_LOGIN}"
    if status == 401:
        message = "the hub wants a token, and none was sent"
        if with_token:
            message = "the hub does not know your token"
        return message, f"make one at {constants.ENDPOINT}/settings/tokens, then {_LOGIN}"
    if status == 403:
        reason = first_line(response.headers.get("X-Error-Message") or response.reason_phrase, 200)
        return f"the hub forbids it: {reason}", "check the rights of your token"
    if status >= 429:
        return f"the hub answers {status}", "try again later; whole files are kept"
    return f"the hub answers {status}", f"look at {page}"


def damage(path: Path, sha256: str | None = None) -> str | None:
    """Why a file of the cache is not the one that the hub announced; None where it is, or lies in
    no such cache.

    The cache names a file by what the hub announced: the SHA-256 of a large file, git's SHA-1 of
    any other. The client checks sizes alone. sha256: the file's own, where it is known.
    """
    if not path.is_symlink():
        return None
    announced = _BLOB.fullmatch(os.readlink(path))
    if announced is None:
        return None
    name = announced[1]
    if len(name) == 64:
        actual = {sha256 or _digest(path, "sha256")}
    else:
        # mirrors that are no git repositories announce the plain SHA-1
        git = _digest(path, "sha1", b"blob %d\0" % path.stat().st_size)
        actual = {git, _digest(path, "sha1")}
    if name in actual:
        return None
    return f"its content is {min(actual)}, the hub announced {name}"


def _digest(path: Path, algorithm: str, header: bytes = b"") -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, lambda: hashlib.new(algorithm, header)).hexdigest()


def cached_commit(name: str, revision: str) -> str | None:
    """The commit that a branch or tag of a model stood for when it was downloaded last; None where
    that is unknown.
    """
    from huggingface_hub import try_to_load_from_cache

    try:
        path = try_to_load_from_cache(name, "config.json", revision=revision)
    except (OSError, ValueError):  # no name of a repository
        return None
    if not isinstance(path, str):
        return None
    return Path(path).parent.name


@lru_cache(maxsize=64)
def model_commit(name: str, revision: str | None) -> str | None:
    """The commit of a model's branch or tag (None: `main`), asked once by a process: its files are
    then of one commit.

    Where the hub does not tell, what the cache knows; None where it knows nothing.
    """
    if revision is not None and re.fullmatch(r"[0-9a-f]{40}", revision):
        return revision
    from huggingface_hub import HfApi

    try:
        commit: str | None = patiently(lambda: HfApi().model_info(name, revision=revision)).sha
    except client_errors():
        return cached_commit(name, revision or "main")
    return commit
