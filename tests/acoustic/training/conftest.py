"""Trainings compute with one thread; tests that are about threads set their number."""

import pytest


@pytest.fixture(scope="module", autouse=True)
def with_one_thread(one_thread) -> None:
    """All tests below."""
