"""What the tests of recipes share: one thread, no pictures."""

from tests.recipes.conftest import toy_run, with_one_thread, without_pictures  # noqa: F401
