"""Pictures of results: what they show, taken from matplotlib's axes, and the files that `argonaut plot` writes."""

import json
import re
import warnings

import numpy as np
import pytest
import soundfile

from decoder.alignment.boundaries import boundary_figures, compare_boundaries
from decoder.lattices.links import weigh
from decoder.scoring.error_counts import score
from readers.dictionaries.phone_classes import grouped
from readers.errors import GraphError
from readers.htk.mlf import Label, write_mlf
from readers.htk.slf import write_slf
from readers.results import ElanDocument, read_textgrid
from readers.results.lattice import Lattice
from readers.results.timed_words import Word, write_tiers
from recipes.cli.main import main
from recipes.pictures import alignment, boundaries, confusions, lattice, tuning
from tests.decoder.lattices.small_lattices import paths, random_lattice

RATE = 16000
LABELS = [
    Label(0, 2000000, "sil[2]", -1.0, (("sil", -1.0),)),
    Label(2000000, 3000000, "g_s2", -1.0, (("g", None), ("GO", None))),
    Label(3000000, 4000000, "g_s3"),
    Label(4000000, 6000000, "ow_s2", None, (("ow", None),)),
]
RECORD = {
    "chosen": {"acweight": 0.2, "beam": 10.0},
    "trials": [
        {"acweight": 0.1, "beam": 15.0, "errors": 9, "words": 100},
        {"acweight": 0.2, "beam": 15.0, "errors": 7, "words": 100},
        {"acweight": 0.2, "beam": 10.0, "errors": 7, "words": 100, "real_time_factor": 0.1},
        {"acweight": 0.2, "beam": 8.0, "errors": 8, "words": 100, "real_time_factor": 0.05},
    ],
}


@pytest.fixture
def figures(monkeypatch) -> list:
    """The figures that were drawn, instead of files."""
    drawn: list = []
    for module in (alignment, boundaries, confusions, lattice, tuning):
        monkeypatch.setattr(module, "save_figure", lambda figure, path, dpi=110: drawn.append(figure))
    return drawn


def test_levels_of_an_alignment_become_tiers():
    words, phones, states = alignment.tiers_of(LABELS)
    assert words == [(0.2, 0.6, "GO")]
    assert phones == [(0.0, 0.2, "sil"), (0.2, 0.4, "g"), (0.4, 0.6, "ow")]
    assert [text for _, _, text in states] == ["sil[2]", "g_s2", "g_s3", "ow_s2"]


def test_pauses_between_labels_belong_to_no_interval():
    labels = [Label(0, 1000000, "a", None, (("A", None),)), Label(1000000, 2000000, "b"), Label(5000000, 6000000, "c")]
    assert alignment.tiers_of(labels[:2]) == [[(0.0, 0.2, "A")], [(0.0, 0.1, "a"), (0.1, 0.2, "b")]]
    assert alignment.tiers_of([labels[0]._replace(aux=()), labels[2]]) == [[(0.0, 0.1, "a"), (0.5, 0.6, "c")]]


@pytest.mark.parametrize("frequency", [440, 3000])
def test_a_spectrogram_is_loudest_at_the_frequency_of_a_tone(frequency):
    time = np.arange(RATE) / RATE
    shown = alignment.spectrogram(np.sin(2 * np.pi * frequency * time), RATE)
    assert shown.max() == 0
    assert shown.min() >= -alignment.DYNAMIC_RANGE
    size = round(alignment.WINDOW * RATE)
    assert abs(shown[:, 100].argmax() * RATE / size - frequency) <= RATE / size


def test_silence_can_be_drawn(figures, tmp_path):
    alignment.draw_alignment(np.zeros(RATE), RATE, {"words": [(0.0, 0.5, "A")]}, tmp_path / "a.png")
    assert [text.get_text() for text in figures[0].axes[1].texts] == ["A"]


@pytest.mark.parametrize("rate", [50, 8000])
def test_long_audio_has_a_limited_number_of_spectra(monkeypatch, rate):
    monkeypatch.setattr(alignment, "MAX_SPECTRA", 50)
    samples = np.random.default_rng(0).normal(size=6 * rate)
    assert 40 <= alignment.spectrogram(samples, rate).shape[1] <= 50
    assert alignment.spectrogram(samples[:1], rate).shape[1] == 1


def test_titles_are_not_formulas(figures, tmp_path):
    small = random_lattice(1, utterance="$a$\\b{")
    lattice.draw_lattice(small, tmp_path / "l.png")
    alignment.draw_alignment(np.zeros(RATE), RATE, {"words": []}, tmp_path / "a.png", small.utterance)
    for figure in figures:
        figure.canvas.draw()
        assert not figure.axes[0].title.get_parse_math()


def test_tiers_lie_below_the_spectrogram(figures, tmp_path):
    tiers = dict(zip(("words", "phones"), alignment.tiers_of(LABELS)))
    samples = np.random.default_rng(0).normal(size=RATE * 6 // 10)
    alignment.draw_alignment(samples, RATE, tiers, tmp_path / "a.png", "u1")
    spectrum, words, phones = figures[0].axes
    assert spectrum.get_title() == "u1"
    assert spectrum.images[0].get_extent() == [0, 0.6, 0, 8]
    assert [(t.get_text(), round(t.get_position()[0], 3)) for t in words.texts] == [("GO", 0.4)]
    assert [t.get_text() for t in phones.texts] == ["sil", "g", "ow"]


def test_a_panel_for_each_option_that_varied_and_one_of_speed(figures, tmp_path):
    tuning.draw_tuning(RECORD, tmp_path / "t.png")
    weight, beam, speed = figures[0].axes
    assert weight.lines[0].get_xydata().tolist() == [[0.1, 9.0], [0.2, 7.0]]  # with the widest beam
    assert beam.lines[0].get_xydata().tolist() == [[8.0, 8.0], [10.0, 7.0], [15.0, 7.0]]
    assert speed.lines[0].get_xydata().tolist() == [[0.05, 8.0], [0.1, 7.0]]
    assert [text.get_text() for text in weight.get_legend().get_texts()] == ["chosen: 0.2"]


def test_phones_are_grouped_by_class():
    assert grouped(["T", "AA1", "s", "m", "iy"]) == (
        ["iy", "AA1", "m", "s", "T"],
        [("vowels", 2), ("nasals", 1), ("fricatives", 1), ("stops", 1)],
    )
    assert grouped(["t", "HOUSE", "aa"]) == (["HOUSE", "aa", "t"], [])
    assert grouped([]) == ([], [])


def test_errors_of_boundaries_are_drawn_over_time_and_by_class(figures, tmp_path):
    reference = [Label(0, 1000000, "s"), Label(1000000, 2000000, "iy")]
    moved = [Label(0, 1300000, "s"), Label(1300000, 2000000, "iy")]
    comparison = compare_boundaries({"u": reference}, {"u": moved})
    boundaries.draw_boundaries({"phones": comparison}, {"phones": boundary_figures(comparison)}, tmp_path / "b.png")
    axes, panel, _ = figures[0].axes
    errors, shares = axes.lines[0].get_data()
    assert errors.tolist() == [0, 0, 30, 100]
    assert shares.tolist() == pytest.approx([100 / 3, 200 / 3, 100, 100])
    assert axes.get_legend().get_texts()[0].get_text() == "phones: F1 0.667, R-value 0.715"
    names = [label.get_text() for label in panel.get_yticklabels()]
    assert names == ["fricatives", "silence", "vowels"]
    assert {text.get_position(): text.get_text() for text in panel.texts} == {(2, 0): "30", (0, 1): "0", (1, 2): "0"}


def test_confusions_of_phones_have_their_classes_and_a_colour_bar(figures, tmp_path):
    confusions.draw_confusions(score({"u": ["t", "aa", "t"]}, {"u": ["d", "iy", "t"]}), tmp_path / "c.png")
    axes, bar = figures[0].axes
    assert [label.get_text() for label in axes.get_yticklabels()] == ["iy", "aa", "d", "t", "***"]
    assert {text.get_text() for text in axes.texts} >= {"vowels", "stops"}
    assert bar.get_ylabel() == "% of the spoken phone"
    assert axes.images[0].get_array()[3].tolist() == [0, 0, 50, 50, 0]


def test_a_lattice_shows_words_and_times(figures, tmp_path):
    small = random_lattice(1)
    lattice.draw_lattice(small, tmp_path / "l.png")
    texts = [text.get_text() for text in figures[0].axes[0].texts]
    for word in set(small.word) - {"!NULL"}:
        assert texts.count(word) == small.word.count(word)
    assert sum(text == f"{time:.2f}" for text in texts for time in set(small.time)) >= len(set(small.time))


def chain(num_links: int, words: int = 1) -> Lattice:
    """A lattice with `words` links between a node and the next one."""
    nodes = np.repeat(np.arange(num_links), words)
    return Lattice.of_words(
        time=np.arange(num_links + 1) * 0.1,
        start=nodes,
        end=nodes + 1,
        word=[f"w{word}" for word in range(words)] * num_links,
        acoustic=-np.arange(num_links * words, dtype=float),
        lm=np.zeros(num_links * words),
        path="c.lat",
    )


def test_parallel_links_and_the_title_fit_into_the_picture(figures, tmp_path):
    lattice.draw_lattice(chain(1, 60), tmp_path / "l.png")
    (axes,) = figures[0].axes
    (left, right), (bottom, top) = axes.get_xlim(), axes.get_ylim()
    places = np.array([text.get_position() for text in axes.texts])
    assert (places >= (left, bottom)).all()
    assert (places <= (right, top)).all()
    assert figures[0].get_figwidth() >= 6


@pytest.mark.parametrize(
    ("large", "message"),
    [
        (chain(0), "c.lat: no links; expected at least one to draw"),
        (chain(300), "c.lat: a path of 300 links; a picture has room for 215"),
        (chain(1, 3000), "c.lat: no room for 3000 links in a picture; expected fewer"),
    ],
)
def test_lattices_that_cannot_be_drawn_are_refused(tmp_path, large, message):
    with pytest.raises(GraphError, match=re.escape(message)):
        lattice.draw_lattice(large, tmp_path / "l.png", 3000)
    assert not (tmp_path / "l.png").exists()


@pytest.mark.parametrize("seed", range(6))
def test_the_links_of_the_best_paths_are_drawn(seed):
    """The links that are kept are those of some best paths, and of no others."""
    scored = weigh(random_lattice(seed))
    ordered = [set(links) for links, _ in sorted(paths(scored.lattice), key=lambda found: -found[1])]
    for count in range(1, scored.lattice.num_links + 1):
        kept = set(lattice.best_links(scored, count).tolist())
        assert len(kept) <= max(count, len(ordered[0]))
        assert kept == set().union(*(links for links in ordered if links <= kept))
        assert ordered[0] <= kept
        if len(ordered[0] | ordered[1]) <= count:
            assert ordered[1] <= kept


@pytest.fixture
def files(tmp_path):
    soundfile.write(tmp_path / "u1.wav", np.random.default_rng(0).integers(-99, 99, 9600, np.int16), RATE)
    write_mlf(tmp_path / "aligned.mlf", [("*/u1.lab", LABELS)])
    write_mlf(tmp_path / "words.mlf", [("*/u1.lab", [Label(None, None, "GO")])])
    write_mlf(tmp_path / "half.mlf", [("*/u1.lab", [*LABELS, Label(None, None, "GO")])])
    (tmp_path / "tune.json").write_text(json.dumps(RECORD))
    write_slf(tmp_path / "l.lat", random_lattice(1))
    write_tiers(tmp_path / "u1.TextGrid", {"words": [Word("GO", 0.2, 0.5)], "phones": []}, 0.6)
    points = 'File type = "ooTextFile"\n"TextGrid"\n0\n1\n<exists>\n1\n"TextTier"\n"clicks"\n0\n1\n1\n0.5\n"x"\n'
    (tmp_path / "points.TextGrid").write_text(points)
    return tmp_path


@pytest.mark.parametrize(
    "arguments",
    [
        ("align", "u1.wav", "--mlf", "aligned.mlf"),
        ("align", "u1.wav", "--textgrid", "u1.TextGrid"),
        ("tuning", "tune.json"),
        ("lattice", "l.lat"),
    ],
)
def test_the_command_writes_a_picture(files, monkeypatch, capsys, arguments):
    monkeypatch.chdir(files)
    assert main(["plot", *arguments, "-o", "p.png"]) == 0
    assert (files / "p.png").read_bytes().startswith(b"\x89PNG")
    assert capsys.readouterr().out == "picture: p.png\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["align", "u1.wav", "--mlf", "words.mlf"], "words.mlf:2: no times; expected an alignment"),
        (["align", "u1.wav", "--mlf", "half.mlf"], "half.mlf:2: no times; expected an alignment"),
        (["align", "u1.wav", "--mlf", "aligned.mlf", "--utterance", "u2"], "no entry for u2; expected an entry"),
        (["align", "aligned.mlf", "--mlf", "aligned.mlf"], "aligned.mlf: "),
        (["align", "u1.wav", "--textgrid", "aligned.mlf"], "aligned.mlf:1: .*; expected a TextGrid"),
        (["align", "u1.wav", "--textgrid", "points.TextGrid"], "points.TextGrid: no tier of intervals; expected"),
        (
            ["align", "u1.wav", "--textgrid", "u1.TextGrid", "--states"],
            "--states is given with --textgrid; expected",
        ),
        (
            ["align", "u1.wav", "--textgrid", "u1.TextGrid", "--mlf", "aligned.mlf"],
            "--mlf is given beside --textgrid",
        ),
        (["align", "u1.wav"], "--mlf is missing; expected it or --textgrid"),
        (["tuning", "aligned.mlf"], "aligned.mlf: .*; expected the result of stage tune"),
        (["lattice", "tune.json"], "tune.json"),
    ],
)
def test_wrong_files_are_refused(files, monkeypatch, capsys, arguments, message):
    monkeypatch.chdir(files)
    assert main(["plot", *arguments, "-o", "p.png"]) == 2
    error = capsys.readouterr().err
    assert re.search(message, error), error
    assert not (files / "p.png").exists()


@pytest.mark.parametrize("name", ["u1.TextGrid", "u1.eaf"])
def test_the_tiers_of_a_textgrid_or_an_elan_file_are_drawn(name, files, figures, monkeypatch):
    monkeypatch.chdir(files)
    ElanDocument.empty("u1.eaf").with_tiers(read_textgrid("u1.TextGrid")).write("u1.eaf")
    assert main(["plot", "align", "u1.wav", "--textgrid", name, "-o", "p.png"]) == 0
    _, words, phones = figures[0].axes
    assert [axes.get_ylabel() for axes in (words, phones)] == ["words", "phones"]
    (text,) = words.texts
    assert text.get_text() == "GO"
    assert text.get_position()[0] == pytest.approx(0.35)


def test_characters_without_a_glyph_are_named_in_one_line(files, monkeypatch, capsys):
    monkeypatch.chdir(files)
    words = [Label(0, 6000000, "\u65e5\u672c\u65e5")]
    write_mlf("kanji.mlf", [("*/u1.lab", words)])
    monkeypatch.setattr("warnings.formatwarning", warnings.formatwarning)  # the command replaces it
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        monkeypatch.setattr("warnings.showwarning", lambda *found: print(warnings.formatwarning(*found[:4]), end=""))
        assert main(["plot", "align", "u1.wav", "--mlf", "kanji.mlf", "-o", "p.png"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "warning: p.png: boxes in place of \u65e5\u672c, which the font does not have",
        "picture: p.png",
    ]


def test_the_alignment_is_not_overwritten(files, monkeypatch, capsys):
    monkeypatch.chdir(files)
    content = (files / "aligned.mlf").rename("mlf.png").read_bytes()
    assert main(["plot", "align", "u1.wav", "--mlf", "mlf.png", "-o", "mlf.png"]) == 2
    assert "mlf.png: is an input and would be overwritten" in capsys.readouterr().err
    assert (files / "mlf.png").read_bytes() == content


def test_the_picture_must_be_a_png(files, monkeypatch, capsys):
    monkeypatch.chdir(files)
    assert main(["plot", "tuning", "tune.json", "-o", "p.svg"]) == 2
    assert "--output is p.svg; expected the name of a PNG file" in capsys.readouterr().err
