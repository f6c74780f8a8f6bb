"""One server and one process of commands for all tests of this folder; each test has its own cache
and repositories.
"""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.helpers.hub_commands import HubCommands
from tests.helpers.hub_server import HubServer
from tests.helpers.tiny import make_tiny_encoder


@pytest.fixture(scope="session")
def _server() -> Iterator[HubServer]:
    with closing(HubServer()) as server:
        yield server


@pytest.fixture(scope="session")
def _commands(
    _server: HubServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[HubCommands]:
    with closing(HubCommands(_server.address, tmp_path_factory.mktemp("hub"))) as commands:
        yield commands


@pytest.fixture
def hub(_server: HubServer) -> Iterator[HubServer]:
    """The server without repositories; no token may ever have reached the CDN."""
    for content in (_server.repositories, _server.accounts):
        content.clear()
    _server.forget()
    yield _server
    assert not [s for s in _server.seen if s.server == "cdn" and s.token], "the CDN saw a token"


@pytest.fixture
def command(_commands: HubCommands, tmp_path: Path) -> HubCommands:
    """`biobench ...` with an empty cache of the hub."""
    _commands.home = tmp_path / "home"
    return _commands


@pytest.fixture(scope="session")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The files of a tiny encoder."""
    folder = make_tiny_encoder(tmp_path_factory.mktemp("model") / "tiny")
    return {path.name: path.read_bytes() for path in folder.iterdir()}
