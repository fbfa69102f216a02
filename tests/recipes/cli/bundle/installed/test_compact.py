"""Compact bundles: small files that are unpacked once."""

import lzma
import re
import shutil
import zipfile

import numpy as np
import pytest

import argonaut
from decoder.recognizer import Recognizer, pack
from decoder.recognizer.bundle import Bundle
from decoder.storage.compression import compress, decompress, rounded_costs
from readers.common.file_part import part_of
from readers.errors import ConfigError, FormatError
from readers.tables.tensor_file import load_tensors
from tests.recipes.cli.bundle.conftest import parts_of

pytestmark = pytest.mark.usefixtures("cache")


def changed(path, change):
    """Write a zip file again, with the members that `change` returns, given names and contents."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    members = change(members)
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            entry = zipfile.ZipInfo(name)
            padding = -(archive.fp.tell() + 30 + len(name) + 4) % 64
            entry.extra = b"\x35\xd9" + padding.to_bytes(2, "little") + bytes(padding)
            archive.writestr(entry, content)


def test_it_is_a_small_file_that_recognises_the_same(compact, packed, cache):
    with zipfile.ZipFile(compact) as archive:
        names = archive.namelist()
    assert names[0] == "bundle.json"
    assert all(name.endswith(".xz") for name in names[1:])
    assert "search.mapped.xz" not in names
    assert compact.stat().st_size < 0.7 * (packed / "digits.argo").stat().st_size
    recognizer, whole = Recognizer.load(compact), Recognizer.load(packed / "digits.argo")
    assert recognizer.bundle.path == compact
    assert recognizer.bundle.size == compact.stat().st_size
    transcript, expected = (each.transcribe(packed / "speech.wav") for each in (recognizer, whole))
    assert transcript.text == expected.text == "AB C"
    times = [[(word.start, word.end) for word in each.words] for each in (transcript, expected)]
    assert times[0] == times[1]
    assert recognizer.align(packed / "speech.wav", "AB C").text == "AB C"
    assert [path.is_dir() for path in cache.iterdir()] == [True]


def test_it_is_unpacked_once_and_again_if_the_copy_is_damaged(compact, cache):
    Bundle.open(compact)
    (directory,) = cache.iterdir()
    before = (directory / "graph.dg").stat()
    Bundle.open(compact)
    assert (directory / "graph.dg").stat().st_ino == before.st_ino
    (directory / "graph.dg").write_bytes(b"")
    assert Bundle.open(compact).parts["graph.dg"].size == before.st_size
    shutil.copy(compact, moved := compact.with_name("moved.argo"))
    Bundle.open(moved)
    assert list(cache.iterdir()) == [directory]


def test_messages_name_it_and_not_its_copy(compact):
    with pytest.raises(ConfigError, match=re.escape(f"{compact}:model.safetensors was trained")):
        Recognizer.load(compact).transcribe(np.zeros(4000, np.int16), 1000)


def test_its_card_is_listed_without_unpacking_it(compact, cache, monkeypatch):
    monkeypatch.setenv("ARGONAUT_MODELS", str(compact.parent))
    model = next(model for model in argonaut.models() if model.name == "small")
    assert (model.size, model.description) == (compact.stat().st_size, Bundle.open(compact).description)
    shutil.rmtree(cache)
    argonaut.models()
    assert not cache.exists()


def test_without_a_cache_it_is_unpacked_for_the_process(compact, cache, packed):
    cache.parent.mkdir(parents=True, exist_ok=True)
    cache.write_text("a file")
    assert Recognizer.load(compact).transcribe(packed / "speech.wav").text == "AB C"


def test_weights_have_16_bits(small_system, compact):
    """Those of bfloat16: the nearest numbers whose lower 16 bits are 0; vectors keep all bits."""
    exact = load_tensors(small_system / "model/net")[0]
    with zipfile.ZipFile(compact) as archive:
        (compact.parent / "model").write_bytes(lzma.decompress(archive.read("model.safetensors.xz")))
    rounded = load_tensors(compact.parent / "model")[0]
    num_matrices = 0
    for name, values in rounded.items():
        if 1 in values.shape:
            assert np.array_equal(values, exact[name])
            continue
        num_matrices += 1
        assert not np.any(values.copy().view(np.uint32) & 0xFFFF)
        exponents = np.floor(np.log2(np.abs(exact[name].astype(np.float64))))
        assert np.all(np.abs(values - exact[name].astype(np.float64)) <= 2.0 ** (exponents - 8))
    assert num_matrices > 1


def test_costs_are_rounded_to_the_nearest_step():
    costs = np.array([0.0, 0.01, 0.02, 1.0, 2.71828, np.inf], np.float32)
    assert rounded_costs(costs).tolist() == [0.0, 0.0, 0.03125, 1.0, 2.71875, np.inf]
    assert rounded_costs(costs).dtype == np.float32


def test_streams_are_those_of_xz(tmp_path):
    content = np.arange(10_000, dtype="<i4").tobytes()
    (tmp_path / "packed").write_bytes(compress(content))
    assert lzma.decompress(compress(content)) == content
    part = part_of(tmp_path / "packed")
    assert decompress(part, len(content)) == content
    for size in (len(content) - 1, len(content) + 1):
        with pytest.raises(FormatError, match=f"packed: not {size} bytes, unpacked; expected as many"):
            decompress(part, size)
    with pytest.raises(FormatError, match=r"packed: 1000000000000 bytes in .*; expected at most 1000 times"):
        decompress(part, 10**12)
    (tmp_path / "packed").write_bytes(compress(content)[:-30])
    with pytest.raises(FormatError, match="packed: not 40000 bytes"):
        decompress(part_of(tmp_path / "packed"), len(content))
    (tmp_path / "packed").write_bytes(b"no stream of xz")
    with pytest.raises(FormatError, match=r"packed: .*; expected a stream of xz; the file is damaged"):
        decompress(part_of(tmp_path / "packed"), len(content))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda members: members | {"cntkmap.xz": compress(b"x")}, "small.argo:cntkmap.xz: not .* bytes, unpacked"),
        (
            lambda members: members | {"graph.dg.xz": b"no stream of xz"},
            "small.argo:graph.dg.xz: .*; expected a stream of xz",
        ),
        (
            lambda members: {name: content for name, content in members.items() if name != "dictionary.xz"},
            "small.argo: no member dictionary.xz; expected one",
        ),
        (lambda members: members | {"search.mapped.xz": b""}, "search.mapped.xz: not in bundle.json; expected it"),
        (lambda members: members | {"graph.dg": b""}, "small.argo:graph.dg: not in bundle.json; expected it there"),
        (lambda members: members | {"other.xz": b""}, "small.argo: member 'other.xz'; expected bundle.json"),
        (lambda members: {name: members[name] for name in members if name != "bundle.json"}, "no bundle.json"),
    ],
)  # fmt: skip
def test_damage_is_told(compact, cache, change, message):
    changed(compact, change)
    with pytest.raises(FormatError, match=message):
        Recognizer.load(compact)
    assert not cache.exists() or not list(cache.iterdir())


def test_a_wrong_checksum_is_told(compact):
    def swap(members):
        content = bytearray(lzma.decompress(members["cntkmap.xz"]))
        content[3] ^= 1
        return members | {"cntkmap.xz": compress(bytes(content))}

    changed(compact, swap)
    with pytest.raises(FormatError, match=r"cntkmap\.xz: wrong checksum; the bundle is damaged"):
        Recognizer.load(compact)


def test_it_stays_compact_when_it_is_calibrated(compact, packed, user):
    for path in (compact, packed / "speech.wav"):
        shutil.copy(path, user.root)
    user.write("words.trn", "AB C (speech)\n")
    done = user.run("calibrate", "small.argo", "words.trn", "speech.wav", "-o", "fitted.argo")
    assert done.status == 0
    bundle = Recognizer.load(user.root / "fitted.argo").bundle
    assert bundle.is_compact
    assert "calibration.json" in bundle.parts


def test_a_directory_cannot_be_compact(small_system, tmp_path):
    with pytest.raises(ConfigError, match="folder: a directory of a compact bundle; expected a name that ends in"):
        pack(parts_of(small_system, compact=True), tmp_path / "folder")
    assert not (tmp_path / "folder").exists()
