"""A small server on the loopback address that speaks the protocol of the Hugging Face hub, and errs
on request.

What it answers is read off the requests of huggingface_hub 2.4, transformers 5.23 and datasets 5.2.
Small files come from the hub itself, by a redirect on the same host; large ones from a second
server, which stands for the CDN and may never see a token. Xet storage is not spoken: no file is
announced as lying there.
"""

from __future__ import annotations

import base64
import hashlib
import json
from typing import Any
from urllib.parse import quote

from tests.helpers.hub_repo import LFS_ENDINGS, Account, Repository, Request
from tests.helpers.hub_wire import RefusedRequest, Traffic, WireHandler

PAGE = 3
"""Entries of one page of a tree: so few that most listings have several."""


class HubServer(Traffic):
    """Repositories and accounts behind two ports of the loopback address."""

    def __init__(self) -> None:
        super().__init__()
        self.repositories: dict[tuple[str, str], Repository] = {}
        self.accounts: dict[str, Account] = {}
        self._servers = {
            name: self.listen(kind) for name, kind in (("hub", HubHandler), ("cdn", CdnHandler))
        }
        self.address, self.cdn = (
            f"http://127.0.0.1:{server.server_port}" for server in self._servers.values()
        )

    def repository(
        self, kind: str, name: str, files: dict[str, bytes], **fields: Any
    ) -> Repository:
        """A new repository (kind: models or datasets) with one commit on `main`."""
        self.repositories[kind, name] = Repository(kind, name, **fields)
        self.repositories[kind, name].commit(files)
        return self.repositories[kind, name]

    def account(self, token: str, **fields: Any) -> None:
        """A user with this token."""
        self.accounts[token] = Account(**fields)

    def close(self) -> None:
        """Stop both servers; their ports refuse connections from here on."""
        for server in self._servers.values():
            server.shutdown()
            server.server_close()


class CdnHandler(WireHandler):
    """Large files by SHA-256: sent with PUT, read with GET. It asks for nothing but the address."""

    role = "cdn"
    outer: HubServer

    def route(self, segments: list[str]) -> None:
        *place, sha = segments
        repository = self.outer.repositories[place[0], "/".join(place[1:])]
        if self.command == "PUT":
            assert hashlib.sha256(self.body).hexdigest() == sha
            repository.uploaded[sha] = self.body
            self.send(b"")
            return
        files = (item for tree in repository.commits.values() for item in tree.items())
        content = next(content for path, content in files if repository.etag(path, content) == sha)
        self.content(content, {"ETag": f'"{sha}"'})


class HubHandler(WireHandler):
    """The hub's API and its files."""

    role = "hub"
    outer: HubServer

    def route(self, segments: list[str]) -> None:
        match segments:
            case ["api", "validate-yaml"]:
                self.json({"errors": [], "warnings": []})
            case ["api", "resolve-cache", kind, owner, name, commit, *path]:
                self._file(
                    self._repository(kind, f"{owner}/{name}"), commit, "/".join(path), final=True
                )
            case ["api", ("models" | "datasets") as kind, owner, name, *rest]:
                self._api(self._repository(kind, f"{owner}/{name}"), rest)
            case ["datasets", owner, name, "resolve", revision, *path]:
                self._file(
                    self._repository("datasets", f"{owner}/{name}"), revision, "/".join(path)
                )
            case [owner, name, "resolve", revision, *path]:
                self._file(self._repository("models", f"{owner}/{name}"), revision, "/".join(path))
            case [*place, "info", "lfs", "objects", "batch"] if place[-1].endswith(".git"):
                kind = "datasets" if place[0] == "datasets" else "models"
                self._batch(
                    self._repository(kind, "/".join(place[-2:]).removesuffix(".git"), write=True)
                )
            case _:
                raise RefusedRequest(404, "", f"no such page: {self.path}")

    def _account(self) -> Account | None:
        account = self.outer.accounts.get(self.token)
        if account is None and self.token is not None:
            raise RefusedRequest(401, "", "Invalid credentials in Authorization header")
        return account

    def _repository(self, kind: str, name: str, *, write: bool = False) -> Repository:
        account = self._account()
        repository = self.outer.repositories.get((kind, name))
        if repository is None:
            raise RefusedRequest(
                401 if account is None else 404, "RepoNotFound", "Repository not found"
            )
        if write and account is None:
            raise RefusedRequest(401, "", "Invalid username or password.")
        if write and account is not None and name not in account.writes:
            raise RefusedRequest(
                403, "", "You don't have the rights to create a pull request in this repository"
            )
        return repository

    def _commit_of(self, repository: Repository, revision: str) -> str:
        commit = repository.resolve(revision)
        if commit is None:
            raise RefusedRequest(404, "RevisionNotFound", f"Invalid rev id: {revision}")
        return commit

    def _api(self, repository: Repository, rest: list[str]) -> None:
        match rest:
            case [] | ["revision", _]:
                commit = self._commit_of(repository, rest[1] if rest else "main")
                self.json(repository.info(commit, sizes="blobs" in self.query))
            case ["tree", revision, *folder]:
                self._tree(repository, revision, "/".join(folder))
            case ["preupload", revision]:
                self._preupload(
                    self._repository(repository.kind, repository.name, write=True), revision
                )
            case ["commit", revision]:
                self._commit(
                    self._repository(repository.kind, repository.name, write=True), revision
                )
            case _:
                raise RefusedRequest(404, "", f"no such page: {self.path}")

    def _tree(self, repository: Repository, revision: str, folder: str) -> None:
        commit = self._commit_of(repository, revision)
        entries = repository.listing(
            commit, folder, self.query.get("recursive", ["false"])[0].lower() == "true"
        )
        if entries is None:
            raise RefusedRequest(404, "EntryNotFound", f"{folder} does not exist on {revision}")
        start = int(self.query.get("cursor", ["0"])[0])
        headers = {}
        if start + PAGE < len(entries):
            words = "&".join(f"{k}={quote(v[0])}" for k, v in self.query.items() if k != "cursor")
            path = self.path.partition("?")[0]
            headers = {
                "Link": f'<{self.outer.address}{path}?{words}&cursor={start + PAGE}>; rel="next"'
            }
        self.json(entries[start : start + PAGE], headers=headers)

    def _file(
        self, repository: Repository, revision: str, path: str, *, final: bool = False
    ) -> None:
        commit = self._commit_of(repository, revision)
        self._gate(repository)
        content = repository.commits[commit].get(path)
        if content is None:
            raise RefusedRequest(404, "EntryNotFound", "Entry not found", X_Repo_Commit=commit)
        etag = repository.etag(path, content)
        headers = {"X-Repo-Commit": commit, "ETag": f'"{etag}"'}
        if path.endswith(LFS_ENDINGS):
            headers |= {"X-Linked-Size": str(len(content)), "X-Linked-ETag": f'"{etag}"'}
            place = f"{self.outer.cdn}/{repository.kind}/{repository.name}/{etag}"
            self.send(b"", 302, {**headers, "Location": place})
        elif final:
            self.content(content, headers)
        else:
            place = f"/api/resolve-cache/{repository.kind}/{repository.name}/{commit}/{quote(path)}"
            self.send(b"", 307, {**headers, "Location": place})

    def _gate(self, repository: Repository) -> None:
        if not repository.gated:
            return
        account, what = (
            self._account(),
            f"Access to {repository.kind[:-1]} {repository.name} is restricted",
        )
        if account is None:
            raise RefusedRequest(
                401, "GatedRepo", f"{what}. You must be authenticated to access it. Please log in."
            )
        if repository.name not in account.granted:
            raise RefusedRequest(
                403, "GatedRepo", f"{what} and you are not in the authorized list."
            )

    def _preupload(self, repository: Repository, revision: str) -> None:
        tree = repository.commits[self._commit_of(repository, revision)]
        files = []
        for file in json.loads(self.body)["files"]:
            path = file["path"]
            mode = "lfs" if path.endswith(LFS_ENDINGS) else "regular"
            oid = repository.entry(path, tree[path])["oid"] if path in tree else None
            files.append({"path": path, "uploadMode": mode, "shouldIgnore": False, "oid": oid})
        self.json({"files": files, "commitOid": repository.resolve(revision)})

    def _commit(self, repository: Repository, revision: str) -> None:
        parent = self._commit_of(repository, revision)
        header, *operations = (json.loads(line) for line in self.body.splitlines())
        files = {}
        for operation in operations:
            value = operation["value"]
            if operation["key"] == "file":
                files[value["path"]] = base64.b64decode(value["content"])
            else:
                files[value["path"]] = repository.uploaded[value["oid"]]
        about: dict[str, Any] = {}
        ref = revision
        if "create_pr" in self.query:
            words = header["value"]
            repository.requests.append(Request(words["summary"], words["description"], "open"))
            ref = f"refs/pr/{len(repository.requests)}"
            about["pullRequestUrl"] = (
                f"{self._page(repository)}/discussions/{len(repository.requests)}"
            )
        sha = repository.commit(files, ref, parent=parent)
        self.json(
            {
                "success": True,
                "commitOid": sha,
                "commitUrl": f"{self._page(repository)}/commit/{sha}",
                **about,
            }
        )

    def _page(self, repository: Repository) -> str:
        kind = "datasets/" if repository.kind == "datasets" else ""
        return f"{self.outer.address}/{kind}{repository.name}"

    def _batch(self, repository: Repository) -> None:
        objects = []
        for item in json.loads(self.body)["objects"]:
            href = f"{self.outer.cdn}/{repository.kind}/{repository.name}/{item['oid']}"
            objects.append({**item, "actions": {"upload": {"href": href}}})
        self.json(
            {"transfer": "basic", "objects": objects},
            headers={"Content-Type": "application/vnd.git-lfs+json"},
        )
