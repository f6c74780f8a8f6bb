"""Repositories as the hub keeps them: commits of whole files, branches, pull requests, who may read
and write.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Any

LFS_ENDINGS = (".safetensors", ".bin", ".parquet", ".zip", ".gz")
"""Kept in large file storage, as the `.gitattributes` of a new repository on the hub says."""


@dataclass
class Account:
    """A user by token. writes, granted: repositories that it may write to, gated ones that it was
    let into.
    """

    writes: set[str] = field(default_factory=set)
    granted: set[str] = field(default_factory=set)


@dataclass
class Request:
    """A pull request; number from 1."""

    title: str
    description: str
    status: str = "draft"


def git_blob(content: bytes) -> str:
    """The SHA-1 by which git names a file's content."""
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


@dataclass
class Repository:
    """kind: models or datasets. commits: what each holds, path to content. refs: branches, tags and
    pull requests.
    """

    kind: str
    name: str
    gated: bool = False
    commits: dict[str, dict[str, bytes]] = field(default_factory=dict)
    refs: dict[str, str] = field(default_factory=dict)
    requests: list[Request] = field(default_factory=list)
    uploaded: dict[str, bytes] = field(default_factory=dict)
    """Large files by SHA-256 that were sent and are not yet part of a commit."""

    def commit(
        self, files: dict[str, bytes], ref: str = "main", *, parent: str | None = None
    ) -> str:
        """Add files to what `ref` (a new one: `parent`) holds; the new commit."""
        before = self.refs.get(ref, parent)
        tree = {**self.commits.get(before or "", {}), **files}
        total = hashlib.sha1(f"{self.kind}/{self.name}/{before}".encode())
        for path, content in sorted(tree.items()):
            total.update(path.encode() + b"\0" + git_blob(content).encode())
        sha = total.hexdigest()
        self.commits[sha] = tree
        self.refs[ref] = sha
        return sha

    def resolve(self, revision: str) -> str | None:
        """The commit of a branch, a tag, a pull request or a commit itself."""
        return revision if revision in self.commits else self.refs.get(revision)

    def etag(self, path: str, content: bytes) -> str:
        """SHA-256 of a large file, git's name of any other."""
        return (
            hashlib.sha256(content).hexdigest() if path.endswith(LFS_ENDINGS) else git_blob(content)
        )

    def entry(self, path: str, content: bytes) -> dict[str, Any]:
        """A file in a listing of the tree."""
        found: dict[str, Any] = {
            "type": "file",
            "path": path,
            "size": len(content),
            "oid": git_blob(content),
        }
        if path.endswith(LFS_ENDINGS):
            pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:%s\nsize %d\n"
            sha = hashlib.sha256(content).hexdigest()
            pointed = pointer % (sha.encode(), len(content))
            found |= {
                "oid": git_blob(pointed),
                "lfs": {"oid": sha, "size": len(content), "pointerSize": len(pointed)},
            }
        return found

    def listing(self, commit: str, folder: str, recursive: bool) -> list[dict[str, Any]] | None:
        """What lies below a folder; None where there is no such folder."""
        prefix = f"{folder}/" if folder else ""
        entries: dict[str, dict[str, Any]] = {}
        for path, content in sorted(self.commits[commit].items()):
            if not path.startswith(prefix):
                continue
            parts = path.removeprefix(prefix).split("/")
            for depth in range(1, len(parts)):
                above = prefix + "/".join(parts[:depth])
                if recursive or depth == 1:
                    entries[above] = {
                        "type": "directory",
                        "path": above,
                        "size": 0,
                        "oid": git_blob(above.encode()),
                    }
            if recursive or len(parts) == 1:
                entries[path] = self.entry(path, content)
        return list(entries.values()) or (None if folder else [])

    def info(self, commit: str, *, sizes: bool) -> dict[str, Any]:
        """What `/api/models/NAME` answers."""
        siblings = []
        for path, content in sorted(self.commits[commit].items()):
            entry = self.entry(path, content)
            more = {"size": entry["size"], "blobId": entry["oid"]} if sizes else {}
            siblings.append({"rfilename": path, **more})
        about: dict[str, Any] = {
            "id": self.name,
            "sha": commit,
            "private": False,
            "siblings": siblings,
        }
        about |= {
            "_id": "0" * 24,
            "gated": "manual" if self.gated else False,
            "disabled": False,
            "tags": [],
        }
        return about | dict.fromkeys(("createdAt", "lastModified"), "2026-01-01T00:00:00.000Z")
