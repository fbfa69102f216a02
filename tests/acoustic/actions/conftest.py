"""Actions compute with one thread."""

import pytest


@pytest.fixture(scope="module", autouse=True)
def with_one_thread(one_thread) -> None:
    """All tests below."""
