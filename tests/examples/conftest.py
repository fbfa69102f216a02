"""The bundle of the small system and a recording of AB C, as the tests of the commands have them."""

from tests.recipes.cli.bundle.conftest import packed
from tests.recipes.conftest import small_system

__all__ = ["packed", "small_system"]
