"""The model hub's client: its errors as one line with a remedy, its patience, and what its cache says a file is."""

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
"""Seconds without a byte after which a request ends, unless HF_HUB_DOWNLOAD_TIMEOUT says otherwise."""
_TRIES = 3
_BUSY = (429, 500, 502, 503, 504)
_LONGEST_WAIT = 300.0
"""Seconds that the hub may ask for between two tries: its limits count requests in windows of five minutes."""
_LOGIN = "set HF_TOKEN or run `hf auth login`"


def client_errors() -> tuple[type[Exception], ...]:
    """What the client raises where something is wrong with the request, the network, the hub or its answer."""
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError

    # Its own error derives from its HTTP library's base error, whichever library that is; that one is no OSError.
    transport: type[Exception] = HfHubHTTPError.__bases__[0]
    return (transport, HFValidationError, OSError)


def set_patience() -> None:
    """End requests of this process that bring nothing: of itself the client waits for some of them for ever."""
    from huggingface_hub import get_session

    session = get_session()
    hooks = session.event_hooks
    if _end_in_time not in hooks["request"]:
        session.event_hooks = {**hooks, "request": [*hooks["request"], _end_in_time]}


def _end_in_time(request: Any) -> None:
    """Bounds each wait of a request that has no bound of its own."""
    from huggingface_hub import constants

    seconds = constants.HF_HUB_DOWNLOAD_TIMEOUT if "HF_HUB_DOWNLOAD_TIMEOUT" in os.environ else _PATIENCE
    waits = request.extensions.get("timeout") or dict.fromkeys(("connect", "read", "write", "pool"))
    request.extensions = {
        **request.extensions,
        "timeout": {name: seconds if wait is None else wait for name, wait in waits.items()},
    }


def patiently(ask: Callable[[], T]) -> T:
    """What the hub's client gives, asked three times where the hub is busy (429 and 5xx).

    Between two tries it waits for as long as the hub says, up to five minutes, else half a second and then one. The
    client itself does so for files, but not where it asks what a repository holds.
    """
    for attempt in range(_TRIES - 1):
        try:
            return ask()
        except client_errors() as error:
            response = getattr(error, "response", None) or getattr(error.__cause__, "response", None)
            if response is None or response.status_code not in _BUSY:
                raise
            asked = _asked_to_wait(response)
            wait = 0.5 * 2**attempt if asked is None else asked
            if wait > _LONGEST_WAIT:
                raise
        time.sleep(wait)
    return ask()


def _asked_to_wait(response: Any) -> float | None:
    """Seconds until the hub takes requests again: `Retry-After` in seconds, or the `t` of `RateLimit`; else None."""
    match = re.fullmatch(r"\s*(\d{1,9})\s*", response.headers.get("Retry-After", ""), re.ASCII)
    if match is None and response.status_code == 429:
        match = re.search(r"\bt=(\d{1,9})\b", response.headers.get("RateLimit", ""), re.ASCII)
    return None if match is None else float(match[1])


def explain(
    error: BaseException, name: str, kind: RepositoryKind = "model", revision: str | None = None
) -> tuple[str, str]:
    """(what is wrong with this repository, what to do), for one of the `client_errors`."""
    from huggingface_hub import constants
    from huggingface_hub import errors as hub

    page = f"{constants.ENDPOINT}/{'datasets/' if kind == 'dataset' else ''}{name}"
    response = getattr(error, "response", None)
    with_token = response is not None and "authorization" in response.request.headers
    status = 0 if response is None else int(response.status_code)
    if isinstance(error, hub.GatedRepoError):
        if with_token:
            return "it is gated, and the account of your token has no access", f"ask for access at {page} with it"
        return "it is gated, and no token was sent", f"accept its terms at {page}, then {_LOGIN}"
    if isinstance(error, hub.RevisionNotFoundError):
        return f"it has no revision '{revision}'", f"name a branch, a tag or a commit of {page}"
    if isinstance(error, hub.RepositoryNotFoundError):
        who = "your token may not read it" if with_token else "is private, and no token was sent"
        return f"it does not exist, or {who}", f"check the id; for a private one {_LOGIN}"
    if is_incomplete(error):
        return "only a part of it is in the cache", "run once with a network, without --offline and HF_HUB_OFFLINE"
    absent = isinstance(error, hub.LocalEntryNotFoundError)
    if isinstance(error, hub.OfflineModeIsEnabled) or (absent and constants.HF_HUB_OFFLINE):
        return "it is not in the cache, and HF_HUB_OFFLINE is set", "run once with a network and without HF_HUB_OFFLINE"
    if absent and isinstance(error.__cause__, client_errors()):
        return explain(error.__cause__, name, kind, revision)
    if status == 401:
        what = "the hub does not know your token" if with_token else "the hub wants a token, and none was sent"
        return what, f"make one at {constants.ENDPOINT}/settings/tokens, then {_LOGIN}"
    if response is not None and status == 403:
        reason = first_line(response.headers.get("X-Error-Message") or response.reason_phrase, 200)
        return f"the hub forbids it: {reason}", "check the rights of your token"
    if status:
        wait = _asked_to_wait(response)
        later = "later" if wait is None else f"in {wait:.0f} s"
        remedy = f"try again {later}; whole files are kept" if status >= 429 else f"look at {page}"
        return f"the hub answers {status}", remedy
    if isinstance(error, hub.HFValidationError):
        return f"it is no repository's id: {first_line(error)}", "an id is owner/name"
    if isinstance(error, OSError) and not isinstance(error, (ConnectionError, TimeoutError)):
        return first_line(error), "run the same again: whole files are kept, this one is fetched anew"
    return f"the connection broke off: {first_line(error)}", "check the network and run the same again"


def is_incomplete(error: BaseException) -> bool:
    """Whether the cache has a part of the repository; older clients do not tell."""
    from huggingface_hub import errors as hub

    return isinstance(error, getattr(hub, "IncompleteSnapshotError", ()))


def damage(path: Path, sha256: str | None = None) -> str | None:
    """Why a file of the cache is not the one that the hub announced; None where it is, or lies in no such cache.

    The cache names a file by what the hub announced: the SHA-256 of a large file, git's SHA-1 of any other. The client
    checks sizes alone. sha256: the file's own, where it is known.
    """
    target = Path(os.readlink(path)) if path.is_symlink() else Path()
    name = target.name if target.parent.name == "blobs" else ""
    if re.fullmatch(r"[0-9a-f]{64}", name):
        actual = {sha256 or _digest(path, "sha256")}
    elif re.fullmatch(r"[0-9a-f]{40}", name):
        # mirrors that are no git repositories announce the plain SHA-1
        actual = {_digest(path, "sha1", b"blob %d\0" % path.stat().st_size), _digest(path, "sha1")}
    else:
        return None
    return None if name in actual else f"its content is {sorted(actual)[0]}, the hub announced {name}"


def _digest(path: Path, algorithm: str, before: bytes = b"") -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, lambda: hashlib.new(algorithm, before)).hexdigest()


def cached_commit(name: str, revision: str) -> str | None:
    """The commit that a branch or tag of a model stood for when it was downloaded last; None where that is unknown."""
    from huggingface_hub import constants

    if not re.fullmatch(r"[\w.-]+(/[\w.-]+)?", name) or ".." in revision.split("/"):
        return None
    place = Path(constants.HF_HUB_CACHE) / f"models--{name.replace('/', '--')}" / "refs" / revision
    try:
        return place.read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return None


@lru_cache(maxsize=64)
def model_commit(name: str, revision: str | None) -> str | None:
    """The commit of a model's branch or tag (None: `main`), asked once by a process: its files are then of one commit.

    Where the hub does not tell, what the cache knows; None where it knows nothing.
    """
    if revision is not None and re.fullmatch(r"[0-9a-f]{40}", revision):
        return revision
    from huggingface_hub import HfApi

    set_patience()
    try:
        commit: str | None = patiently(lambda: HfApi().model_info(name, revision=revision)).sha
    except client_errors():
        return cached_commit(name, revision or "main")
    return commit
