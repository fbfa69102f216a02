"""A few seconds of fuzzing of the three languages; `python -m tests.languages.fuzz_languages` does it for longer."""

import itertools
import signal

import pytest
from hypothesis import HealthCheck, given, settings

from tests.languages import targets, texts

pytestmark = pytest.mark.slow

SETTINGS = {
    "deadline": None,
    "derandomize": True,
    "database": None,
    "suppress_health_check": list(HealthCheck),
}


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    return tmp_path_factory.mktemp("fuzz")


@settings(max_examples=30, **SETTINGS)
@given(texts.CONFIGURATION)
def test_configurations_raise_nothing_but_own_faults(text):
    targets.read_configuration(text)


@settings(max_examples=60, **SETTINGS)
@given(texts.DESCRIPTION)
def test_descriptions_raise_nothing_but_own_faults(text):
    targets.build_description(text)


def test_scripts_raise_nothing_but_own_faults(directory, monkeypatch):
    monkeypatch.chdir(directory)
    files = targets.make_files(directory)

    @settings(max_examples=50, **SETTINGS)
    @given(texts.SCRIPT)
    def run(text):
        targets.run_script(text)

    run()
    assert sorted(path.name for path in directory.iterdir()) == files


@pytest.mark.skipif(not hasattr(signal, "SIGPROF"), reason="needs alarms")
def test_a_text_that_takes_too_long_is_stopped():
    with pytest.raises(targets.TooLong), targets.limited(0.05):
        while True:
            pass


def test_other_exceptions_are_not_taken_for_faults():
    def bug():
        raise KeyError("x")

    with pytest.raises(KeyError):
        targets.expect_own_faults(bug)


def test_the_long_run_reports_a_bug_once_with_a_short_text(monkeypatch, capsys):
    fuzz_languages = pytest.importorskip(
        "tests.languages.fuzz_languages", reason="limits memory with `resource`", exc_type=ImportError
    )

    def broken(text):
        if "(" in text:
            raise KeyError(text)

    monkeypatch.setitem(fuzz_languages.LANGUAGES, "editing", (texts.SCRIPT, broken))
    two_rounds = itertools.count().__next__  # a clock that moves by one second each time someone looks
    tried, failures = fuzz_languages.fuzz("editing", 3, first_seed=0, clock=two_rounds)
    assert tried > fuzz_languages.ROUND  # the second went on behind what the first had found
    assert [kind.split(" at ")[0] for kind in failures] == ["KeyError"]
    assert len(next(iter(failures.values())).splitlines()[0]) < 150
    assert "KeyError" in capsys.readouterr().out
