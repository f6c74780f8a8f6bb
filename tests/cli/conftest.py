"""A warm process that the tests of killed commands start others from."""

from collections.abc import Iterator

import pytest

from tests.helpers.launching import Launcher


@pytest.fixture(scope="session")
def launcher(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Launcher]:
    """One warm process that starts others."""
    launcher = Launcher(tmp_path_factory.mktemp("launcher"))
    yield launcher
    launcher.close()
