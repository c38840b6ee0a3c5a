from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.registry.stub import Stub


@pytest.fixture
def stub() -> Iterator[Stub]:
    registry = Stub()
    yield registry
    registry.close()
