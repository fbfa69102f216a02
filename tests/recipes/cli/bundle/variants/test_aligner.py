"""A bundle with a network that aligns, besides that of the search."""

import shutil

import numpy as np
import pytest

from acoustic.network.model_file import scoring_bytes
from decoder import Recognizer
from decoder.recognizer import AlignerParts, BundleDescription, pack
from decoder.recognizer.bundle import ALIGNER, DESCRIPTION, Bundle, describe
from decoder.recognizer.description import dump, undump
from decoder.recognizer.forced_aligner import ForcedAligner
from readers.common.files import write_content
from readers.errors import ConfigError, FormatError
from readers.tables.tensor_file import load_tensors, tensor_bytes
from recipes.cli.main import main
from tests.recipes.cli.bundle.conftest import parts_of
from tests.recipes.systems.small_system import STATES


def change(model, path, of_tensor) -> AlignerParts:
    """Write a network whose outputs are changed, with its tables in the directory of `path`."""
    tensors, metadata = load_tensors(model)
    changed = {name: of_tensor(array) if len(array) == len(STATES) else array for name, array in tensors.items()}
    write_content(path, tensor_bytes(changed, metadata))
    return AlignerParts(path, path.parent / "graph.dg")


@pytest.fixture(scope="module")
def reversed_parts(small_system, tmp_path_factory) -> AlignerParts:
    """The network and its tables with all states in the other order: they belong together, and to nothing else."""
    root = tmp_path_factory.mktemp("reversed")
    shutil.copytree(small_system / "graph", root, dirs_exist_ok=True)
    rows = [line.split() for line in (root / "cntkmap").read_text().splitlines()]
    lines = (f"{state} {len(STATES) - 1 - int(row)}\n" for state, row in rows)
    (root / "cntkmap").write_text("".join(lines))
    return change(small_system / "model/net", root / "net", lambda array: np.asfortranarray(array[::-1]))


@pytest.fixture(scope="module")
def bundles(small_system, reversed_parts, tmp_path_factory):
    root = tmp_path_factory.mktemp("bundles")
    (root / "deaf").mkdir()
    shutil.copytree(small_system / "graph", root / "deaf", dirs_exist_ok=True)
    deaf = change(small_system / "model/net", root / "deaf/net", np.zeros_like)
    for name, aligner, compact in (
        ("reversed", reversed_parts, False), ("compact", reversed_parts, True), ("deaf", deaf, False),
    ):  # fmt: skip
        pack(parts_of(small_system, aligner=aligner, compact=compact), root / f"{name}.argo")
    return root


def times(transcript):
    return [(phone.text, phone.start, phone.end) for phone in transcript.phones]


@pytest.mark.parametrize("of_bundle", [ForcedAligner.load, lambda path: Recognizer.load(path).aligner()])
def test_it_aligns_with_its_own_tables(bundles, packed, of_bundle):
    expected = ForcedAligner.load(packed / "digits.argo").align(packed / "speech.wav", "AB C")
    aligned = of_bundle(bundles / "reversed.argo").align(packed / "speech.wav", "AB C")
    assert times(aligned) == times(expected)
    assert [word.confidence for word in aligned.words] == [word.confidence for word in expected.words]


def test_a_compact_one_has_weights_of_8_bits(bundles, packed, small_system):
    expected = ForcedAligner.load(packed / "digits.argo").align(packed / "speech.wav", "AB C")
    aligned = ForcedAligner.load(bundles / "compact.argo").align(packed / "speech.wav", "AB C")
    assert [phone.text for phone in aligned.phones] == [phone.text for phone in expected.phones]
    for phone, other in zip(aligned.phones, expected.phones, strict=True):
        assert phone.start == pytest.approx(other.start, abs=0.01)
    tensors, _ = load_tensors(Bundle.open(bundles / "compact.argo").parts[f"{ALIGNER}model.safetensors"])
    rows = [row for array in tensors.values() if array.dtype == np.float32 and 1 not in array.shape for row in array]
    assert rows
    for row in rows:
        assert len(np.unique(np.abs(row))) <= 128
        assert len(np.unique(row)) > 10


def test_the_search_has_the_other_network(bundles, packed):
    recognizer = Recognizer.load(bundles / "deaf.argo")
    assert recognizer.transcribe(packed / "speech.wav").text == "AB C"
    (_, second) = recognizer.align(packed / "speech.wav", "AB C").words
    assert second.confidence == pytest.approx(1.0)  # all phones match equally well
    expected = Recognizer.load(packed / "digits.argo").align(packed / "speech.wav", "AB C")
    assert times(recognizer.align(packed / "speech.wav", "AB C")) != times(expected)


def test_added_words_are_aligned_too(bundles, packed):
    recognizer = Recognizer.load(bundles / "reversed.argo").with_words({"ABC": "a b c"})
    assert recognizer.align(packed / "speech.wav", "ABC").text == "ABC"


@pytest.mark.parametrize("of_bundle", [ForcedAligner.load, lambda path: Recognizer.load(path).aligner()])
def test_a_long_recording_is_aligned_with_the_network_of_the_search(bundles, packed, of_bundle):
    expected = ForcedAligner.load(packed / "digits.argo").align_long(packed / "speech.wav", "AB C").words
    assert of_bundle(bundles / "deaf.argo").align_long(packed / "speech.wav", "AB C").words == expected
    assert [word.text for word in expected] == ["AB", "C"]


def test_the_command_packs_and_shows_it(small_system, reversed_parts, tmp_path, capsys):
    root = small_system
    arguments = [
        *("pack", "--model", root / "model/net", "--graph", root / "graph/graph.dg", "--dict", root / "dict"),
        *("--features", root / "hcopy.config", "--lm", root / "lm.arpa", "-o", tmp_path / "x.argo"),
        *("--aligner", reversed_parts.model),
    ]
    assert main(list(map(str, arguments))) == 2
    assert "--aligner-graph is missing; expected a graph of the phone models of --aligner" in capsys.readouterr().err
    arguments += ["--aligner-graph", reversed_parts.graph, "--aligner-window", 3, "--aligner-node", "HLast"]
    assert main(list(map(str, arguments))) == 0
    assert Bundle.open(tmp_path / "x.argo").description.aligner.output == "HLast"
    capsys.readouterr()
    assert main(["info", str(tmp_path / "x.argo")]) == 0
    assert "network of its own, window 3 frames" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("option", "value"), [("--aligner-graph", "g"), ("--aligner-window", 3), ("--aligner-node", "x")]
)
@pytest.mark.parametrize("is_foreign", [True, False])
def test_what_concerns_an_aligner_is_refused_without_one(is_foreign, option, value, tmp_path, capsys):
    (tmp_path / "hmmdefs").touch()
    parts = [tmp_path] if is_foreign else ["--model", "m", "--graph", "g", "--features", "f"]
    assert main(list(map(str, ["pack", *parts, option, value, "-o", tmp_path / "x.argo"]))) == 2
    assert f"{option} is given without --aligner; expected it, too" in capsys.readouterr().err


def test_a_network_without_its_tables_is_refused(small_system, reversed_parts, tmp_path):
    shutil.copy(reversed_parts.model, tmp_path / "net")
    with pytest.raises(FileNotFoundError, match="cntkmap"):
        pack(parts_of(small_system, aligner=AlignerParts(tmp_path / "net", tmp_path / "graph.dg")), tmp_path / "x.argo")
    (tmp_path / "cntkmap").write_text("a_s2 0\n")
    with pytest.raises(FormatError, match=r"no member aligner\.state_map; expected one"):
        pack(parts_of(small_system, aligner=AlignerParts(tmp_path / "net", tmp_path / "graph.dg")), tmp_path / "x.argo")
    assert not (tmp_path / "x.argo").exists()


def test_a_network_that_cannot_align_the_words_is_refused(small_system, reversed_parts, tmp_path):
    tables = shutil.copytree(reversed_parts.graph.parent, tmp_path / "tables")
    for name in ("state_map", "cntkmap", "transitions"):
        text = (tables / name).read_text()
        (tables / name).write_text(text.replace("a_s", "x_s").replace("a x_s", "x x_s"))
    aligner = AlignerParts(reversed_parts.model, tables / "graph.dg")
    with pytest.raises(ConfigError, match=r"x\.argo: the network that aligns has no model of a; expected one of every"):
        pack(parts_of(small_system, aligner=aligner), tmp_path / "x.argo")
    with pytest.raises(ConfigError, match="net: a network that aligns; expected a dictionary, too"):
        pack(parts_of(small_system, aligner=reversed_parts, dictionary=None), tmp_path / "x.argo")
    assert not (tmp_path / "x.argo").exists()


@pytest.fixture
def folder(small_system, reversed_parts, tmp_path):
    """A bundle in a directory, and a function that changes one of its members or, without content, deletes it."""
    bundle = pack(parts_of(small_system, aligner=reversed_parts), tmp_path / "folder")

    def change(name, content):
        if content is None:
            (bundle.path / name).unlink()
        else:
            (bundle.path / name).write_bytes(content)
        describe(bundle.description, bundle.path)
        return bundle.path

    return change


@pytest.mark.parametrize(
    ("name", "content", "fault"),
    [
        ("aligner.state_map", b"a a_s2 \xff\n", "aligner.state_map:1: byte 0xff is not UTF-8"),
        ("aligner.cntkmap", b"[a_s2] 77\n", "aligner.cntkmap: cntkmap: no index of state [a_s3]"),
        ("aligner.model.safetensors", b"x" * 500, "aligner.model.safetensors: header of"),
    ],
)
def test_validation_finds_its_faults(folder, capsys, name, content, fault):
    path = folder(name, content)
    assert main(["validate", str(path)]) == 2
    assert fault in capsys.readouterr().err


def test_it_aligns_long_recordings_itself_if_the_search_has_no_tables(folder, packed):
    path = folder("state_map", None)
    aligned = ForcedAligner.load(path).align_long(packed / "speech.wav", "AB C")
    assert [word.text for word in aligned.words] == ["AB", "C"]


@pytest.mark.parametrize(
    ("aligner", "fault"),
    [
        ({"output": "x"}, "expected output, window"),
        ({"output": "x", "window": 4}, "window is '4'; expected an odd number of frames"),
        ({"output": "", "window": "3"}, "window is '3'; expected a whole number"),
        (["x"], "expected output, window"),
    ],
)
def test_a_wrong_description_is_refused(bundles, aligner, fault):
    part = Bundle.open(bundles / "deaf.argo")
    data = part.description.as_json() | {"members": [], "aligner": aligner}
    with pytest.raises(FormatError, match=fault):
        BundleDescription.parse(undump(dump(data), DESCRIPTION), DESCRIPTION)


def test_rounded_rows_of_zeros_stay(small_system, tmp_path):
    parts = change(small_system / "model/net", tmp_path / "net", np.zeros_like)
    write_content(tmp_path / "rounded", scoring_bytes(parts.model, parts.output, "int8"))
    assert not any(array.any() for array in load_tensors(tmp_path / "rounded")[0].values() if len(array) == len(STATES))


def test_it_is_opened_once(bundles):
    recognizer = Recognizer.load(bundles / "reversed.argo")
    assert recognizer.aligner() is recognizer.aligner()
    changed = recognizer.with_words({"ABC": "a b c"})
    assert not changed.aligner().unknown(["ABC"])
    assert recognizer.aligner().unknown(["ABC"]) == ["ABC"]
    assert changed.with_audio(channel=0).aligner().channel == 0
