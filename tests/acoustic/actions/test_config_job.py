"""`cntk` as a job: its options are a command line, and the job returns what the commands did."""

from hypothesis import given
from hypothesis import strategies as st

import argonaut
from recipes.cli.cntk import config_options
from tests.recipes.systems.cntk_corpus import make_corpus

WORDS = st.text("abcXYZ_019./", min_size=1, max_size=8)
SETTINGS = st.lists(st.builds("{}={}".format, WORDS.filter(lambda word: word[0].isalpha()), WORDS), max_size=3)


@given(files=st.lists(WORDS, max_size=3), settings=SETTINGS, allows_commands=st.booleans())
def test_a_command_line_of_options_gives_these_options(files, settings, allows_commands):
    options = argonaut.ConfigOptions(files=files, settings=settings, allows_commands=allows_commands)
    assert config_options(options.to_flags()) == options


def test_a_job_returns_reports_and_passes_on_log_and_progress(tmp_path):
    corpus, lines, shown = make_corpus(tmp_path), [], []
    options = argonaut.ConfigOptions(files=corpus / "net.cntk", settings=[f"Exp={corpus}", "command=Train:Test"])
    result = argonaut.run_config(
        options, progress=lambda done, total, **figures: shown.append(figures["stage"]), log=lines.append
    )
    assert result.exit_status == 0
    assert list(result.reports) == ["Train", "Test"]
    assert all(report.num_done for report in result.reports.values())
    assert lines[-1] == "COMPLETED."
    assert set(shown) == {"Train", "Test"}
