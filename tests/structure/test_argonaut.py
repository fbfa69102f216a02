"""The public face in Python."""

import subprocess
import sys

import pytest

import argonaut


def test_every_name_is_there_and_says_what_it_is():
    for name in argonaut.__all__:
        value = getattr(argonaut, name)
        assert value.__doc__, name
        assert name in dir(argonaut)


def test_importing_it_imports_nothing_else():
    heavy = "import argonaut, sys; print(sorted({'numpy', 'numba', 'readers.htk', 'decoder'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", heavy], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_other_names_are_not_there():
    with pytest.raises(AttributeError, match="module 'argonaut' has no attribute 'transcibe'"):
        _ = argonaut.transcibe


def test_a_fault_names_the_parameter():
    with pytest.raises(argonaut.OptionFault, match="min_frames is -1; expected at least 0"):
        argonaut.TreeOptions(min_frames=-1)
