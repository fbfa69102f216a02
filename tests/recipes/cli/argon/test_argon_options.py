"""The options of `argon` as objects: what `to_flags` writes, the command line reads; and its jobs in Python."""

import contextlib
import math
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import argonaut
from readers.config.options.options import is_group
from recipes.cli.argon.command import make_parser
from recipes.cli.argon.parser import canonical
from recipes.cli.flags import options_from
from tests.recipes.systems.argon_system import SENTENCES, words_of

NAMES = st.text("ab-._/ +=", min_size=1, max_size=6).filter(lambda name: name != "--")  # which argparse drops
SPECIAL = {
    "channel": st.integers(0, 9) | st.just("mix"),
    "chunks": st.tuples(st.integers(1, 99), st.integers(0, 99)),
    "encoding": st.just("u8"),
    "running_mean": st.just("whole") | st.builds("{}:{}".format, st.integers(0, 99), st.integers(0, 999)),
    "silence": st.lists(st.text("abc", min_size=1, max_size=3), max_size=2).map(tuple),
}
TEXTS = {bool: st.booleans(), Path: NAMES.map(Path), str: NAMES}


def values(declared):
    """The values that an option may have."""
    if declared.name in SPECIAL:
        return SPECIAL[declared.name]
    if declared.choices:
        return st.sampled_from(declared.choices)
    if declared.type in TEXTS:
        return TEXTS[declared.type]
    low, above, high = declared.range.least, declared.range.above, declared.range.most
    high = high if high is not None and math.isfinite(high) else 999
    if declared.type is int:
        return st.integers(-999 if low is None else int(low), int(high))
    low, high = above if low is None else low, min(high, declared.range.below or high)
    return st.floats(-999 if low is None else low, high, exclude_min=above is not None, exclude_max=True)


LEAVES = [declared for declared in argonaut.DecodeOptions.with_groups() if not is_group(declared)]


def built(options, chosen):
    """Options of a class from the values of fields in it and in its groups."""
    fields = {}
    for declared in options.declared():
        if is_group(declared):
            fields[declared.name] = built(declared.type, chosen)
        elif declared.name in chosen:
            fields[declared.name] = chosen[declared.name]
    return options(**fields)


PARSER = make_parser()


def read(words):
    return options_from(PARSER.parse_args(canonical(words)), argonaut.DecodeOptions)


# Options without which others are refused.
ALONE = {}
AUDIO = {"features": Path("hcopy.config"), "rate": 8000}
STREAM = AUDIO | {"stream": "-", "am": Path("net"), "cntkmap": Path("cntkmap")}
TRANSCRIPTS = {"alignmlf": Path("words.mlf"), "dict": Path("words.dict")}
HOTWORDS = {"hotwords": Path("phrases")}


@pytest.mark.parametrize("name", [declared.name for declared in LEAVES])
@given(data=st.data())
@settings(max_examples=5)
def test_a_command_line_of_options_gives_these_options(name, data):
    others = data.draw(st.lists(st.sampled_from(LEAVES), max_size=2))
    drawn = {declared.name: data.draw(values(declared)) for declared in others}
    drawn |= {name: data.draw(values(argonaut.DecodeOptions.declaration(name)))}
    options = None
    for needed in (ALONE, AUDIO, STREAM, TRANSCRIPTS, HOTWORDS):
        for given_values in (drawn, {name: drawn[name]}):
            with contextlib.suppress(argonaut.OptionFault):
                options = options or built(argonaut.DecodeOptions, {"graph": Path("g.dg")} | needed | given_values)
    assert options is not None
    assert read(options.to_flags()) == options


@pytest.mark.parametrize(
    ("words", "notes"),
    [
        (["--strip-stress", "--map-phones", "map"], ["--strip-stress has no effect without --dict",
                                                     "--map-phones has no effect without --dict"]),
        (["--encoding", "u8", "--channels=2"], ["--encoding has no effect without --features",
                                                "--channels has no effect without --features"]),
        (["-alignmlf", "words.mlf", "--hotwords-score", "2"], ["--hotwords-score has no effect with -alignmlf"]),
        (["-precompile", "true", "--stream", "-"], ["--stream has no effect with -precompile"]),
        (["-precompile", "true", "--stream", "-", "--pause=1"], ["--stream has no effect with -precompile",
                                                                 "--pause has no effect with -precompile"]),
    ],
)  # fmt: skip
def test_options_without_effect_are_left_out(words, notes, capsys):
    options = read(["-graph", "g.dg", *words])
    assert capsys.readouterr().err.splitlines() == [f"note: {note}" for note in notes]
    assert {declared.name for declared, _ in options.changed()} <= {"graph", "alignmlf", "precompile"}


@pytest.mark.parametrize(
    ("words", "partial"),
    [
        (["--partial"], True),
        (["--no-partial"], False),
        (["--no-partial", "--partial"], True),
        (["--partial", "--no-partial"], False),
        (["--no-partial", "--partial", "--no-partial"], False),
    ],
)
def test_the_last_of_partial_and_no_partial_counts(words, partial):
    assert read(["-graph", "g.dg", *words]).output.partial is partial


def files_of(directory, **output):
    acoustic = argonaut.AcousticOptions(
        am=directory / "model", cntkmap=directory / "cntkmap", infiles=directory / "list.scp", window=1
    )
    return argonaut.DecodeOptions(
        graph=directory / "g.dg",
        lm=directory / "lm.arpa",
        acoustic=acoustic,
        output=argonaut.DecodeOutputOptions(**output),
        search=argonaut.DecodeSearchOptions(acweight=1.0, threads=1),
    )


def test_a_job_in_python_decodes_and_says_how_far_it_is(made, tmp_path):
    shown = []
    options = files_of(made, outmlf=tmp_path / "out.mlf", words=tmp_path / "words.srt")
    result = argonaut.decode(options, progress=lambda done, total, **figures: shown.append((done, total)))
    assert words_of(tmp_path / "out.mlf") == SENTENCES
    assert shown == [(number, 4) for number in (1, 2, 3, 4)]
    assert (result.report.num_done, result.source) == (4, str(made / "list.scp"))
    assert result.num_frames > 0 < result.real_time_factor
    assert [path.name for path in result.words_files] == [f"{name}.srt" for name in SENTENCES]
    assert options.output.report_path.exists()


def test_jobs_refuse_the_options_of_others(made, tmp_path):
    options = files_of(made, outmlf=tmp_path / "out.mlf")
    for job, message in (
        (argonaut.align_transcripts, "alignmlf is missing; expected transcripts"),
        (argonaut.decode_stream, "stream is missing; expected audio"),
        (argonaut.compile_graph, "precompile is given without infsm; expected both"),
    ):
        with pytest.raises(argonaut.OptionFault, match=message):
            job(options)
