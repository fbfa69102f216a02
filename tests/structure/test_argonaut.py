"""The public face in Python."""

import inspect
import pickle
import subprocess
import sys
from dataclasses import is_dataclass

import pytest

import argonaut
from readers.config.options.options import is_group


def test_every_name_is_there_and_says_what_it_is():
    for name in argonaut.__all__:
        value = getattr(argonaut, name)
        assert value.__doc__, name
        assert name in dir(argonaut)


def test_every_group_of_public_options_is_public():
    public = [getattr(argonaut, name) for name in argonaut.__all__]
    options = [value for value in public if inspect.isclass(value) and issubclass(value, argonaut.Options)]
    groups = {each.type for value in options if is_dataclass(value) for each in value.declared() if is_group(each)}
    assert {argonaut.SpokenDictionary, argonaut.TreeOptions} < groups <= set(options)


def test_importing_it_imports_nothing_else():
    heavy = "import argonaut, sys; print(sorted({'numpy', 'numba', 'readers.htk', 'decoder'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", heavy], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_other_names_are_not_there():
    with pytest.raises(AttributeError, match="module 'argonaut' has no attribute 'transcibe'"):
        _ = argonaut.transcibe


def test_a_fault_names_the_parameter():
    with pytest.raises(argonaut.OptionFault, match="min_frames is -1; expected at least 0"):
        argonaut.TreeOptions(min_frames=-1)


@pytest.mark.parametrize("options", [None, argonaut.TreeOptions(), {"trees": {}}])
def test_a_job_refuses_what_are_no_options_for_it(options):
    text = rf"tie: options is {'None' if options is None else type(options).__name__}; expected TieOptions"
    with pytest.raises(TypeError, match=text):
        argonaut.tie(options)
    with pytest.raises(TypeError, match=text):
        argonaut.tie(options=options)


def test_a_job_without_options_says_what_is_missing():
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'options'"):
        argonaut.tie()


@pytest.mark.parametrize("job", [argonaut.tie, argonaut.train, argonaut.decode])
def test_a_job_can_be_pickled(job):
    assert pickle.loads(pickle.dumps(job)) is job
