"""Bundles on disk: what is written, what is refused, and that damage is noticed."""

import json
import os
import shutil
import struct
import zipfile

import numpy as np
import pytest

from acoustic.network.model_file import load_model
from decoder import Recognizer
from decoder.recognizer import Bundle, is_bundle, pack, packing
from decoder.recognizer.bundle import ALIGNER, DESCRIPTION, MEMBERS
from decoder.recognizer.description import dump
from readers.common.file_part import FilePart
from readers.common.temporary import NAME
from readers.errors import ArgonautError, ConfigError, FormatError, ModelError
from recipes.file_kinds import describe_file
from tests.recipes.cli.bundle.conftest import OPTIONS, parts_of

FLIPS = 120


def rewrite(path, change):
    """Write the description again, with a right checksum, after `change` has changed its fields."""
    with zipfile.ZipFile(path) as archive:
        files = {entry.filename: archive.read(entry) for entry in archive.infolist()}
    fields = json.loads(files[DESCRIPTION])
    del fields["crc32"]
    change(fields)
    directory = path.with_suffix("")
    directory.mkdir()
    for name, content in (files | {DESCRIPTION: dump(fields)}).items():
        (directory / name).write_bytes(content)
    return directory


def test_members_are_stored_at_multiples_of_64_bytes_and_other_programs_can_read_them(packed, small_system):
    path = packed / "digits.argo"
    bundle = Bundle.open(path)
    absent = {"topology", "tied", "calibration.json", "ivectors.safetensors", "pronunciation.safetensors", "g2p"}
    absent |= {"second_pass.safetensors", "second_pass.json", "model.onnx"}
    assert set(bundle.parts) == {name for name in MEMBERS if not name.startswith(ALIGNER)} - absent
    assert all(part.offset % 64 == 0 for part in bundle.parts.values())
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        assert archive.namelist()[0] == DESCRIPTION
        assert {name: archive.read(name) for name in bundle.parts} == {
            name: part.read_bytes() for name, part in bundle.parts.items()
        }
    assert bundle.parts["dictionary"].read_bytes() == (small_system / "dict").read_bytes()
    assert bundle.description.options == OPTIONS
    assert (bundle.description.window, bundle.description.sample_rate) == (3, 16000)


def test_the_model_in_a_bundle_has_only_what_scoring_needs_and_is_not_copied(packed, small_system, tmp_path):
    part = Bundle.open(packed / "digits.argo").parts["model.safetensors"]
    (tmp_path / "alone").write_bytes(part.read_bytes())
    kept, whole, alone = load_model(part), load_model(small_system / "model/net"), load_model(tmp_path / "alone")
    assert "CrossEntropyWithSoftmax" in whole.nodes
    assert "CrossEntropyWithSoftmax" not in kept.nodes
    assert kept.feature_records == whole.feature_records
    for name, value in kept.stored_values().items():
        assert not value.flags.owndata
        np.testing.assert_array_equal(value, whole.stored_values()[name])
        np.testing.assert_array_equal(value, alone.stored_values()[name])


def test_equal_parts_give_equal_files_and_a_directory_holds_the_same(packed, small_system, tmp_path):
    pack(parts_of(small_system), tmp_path / "again.argo")
    assert (tmp_path / "again.argo").read_bytes() == (packed / "digits.argo").read_bytes()
    directory = pack(parts_of(small_system), tmp_path / "folder")
    inside = Bundle.open(packed / "digits.argo")
    assert directory.description == inside.description
    assert {name: part.read_bytes() for name, part in directory.parts.items()} == {
        name: part.read_bytes() for name, part in inside.parts.items()
    }
    assert sorted(path.name for path in tmp_path.iterdir()) == ["again.argo", "folder"]
    with pytest.raises(ConfigError, match="folder: exists; expected a new directory"):
        pack(parts_of(small_system), tmp_path / "folder")


def test_what_a_killed_pack_leaves_is_known_as_abandoned(small_system, tmp_path, monkeypatch):
    found = []

    def kill(parts, directory):
        found.extend(path.name for path in tmp_path.iterdir())
        raise KeyboardInterrupt

    monkeypatch.setattr(packing, "_fill", kill)
    with pytest.raises(KeyboardInterrupt):
        pack(parts_of(small_system), tmp_path / "own.argo")
    assert len(found) == 1
    assert NAME.fullmatch(found[0])
    assert not list(tmp_path.iterdir())


def test_flipped_bits_are_noticed_or_harmless(packed, own):
    sound = Recognizer.load(own).transcribe(packed / "speech.wav").words
    content, rng = bytearray(own.read_bytes()), np.random.default_rng(1)
    places = [int(place) for place in rng.integers(0, 8 * len(content), FLIPS // 2)]
    # The description and the end of the file are small, and would rarely be hit.
    places += [int(place) for place in rng.integers(0, 8 * 4096, FLIPS // 4)]
    places += [int(place) for place in rng.integers(8 * (len(content) - 1024), 8 * len(content), FLIPS // 4)]
    members = [range(part.offset, part.offset + part.size) for part in Bundle.open(own).parts.values()]
    for place in places:
        content[place // 8] ^= 1 << place % 8
        own.write_bytes(content)
        content[place // 8] ^= 1 << place % 8
        try:
            words = Recognizer.load(own).transcribe(packed / "speech.wav").words
        except ArgonautError:
            continue
        assert not any(place // 8 in member for member in members)
        assert words == sound


@pytest.mark.parametrize("form", ["file", "directory"])
def test_a_bundle_cut_short_is_refused(form, own):
    content = own.read_bytes()
    for size in (0, 3, 29, 500, len(content) // 2, len(content) - 30):
        own.write_bytes(content[:size])
        with pytest.raises(FormatError):
            Bundle.open(own)
    own.write_bytes(content)
    if form == "directory":
        directory = rewrite(own, lambda fields: None)
        Bundle.open(directory)
        graph = directory / "graph.dg"
        graph.write_bytes(graph.read_bytes()[:-1])
        with pytest.raises(FormatError, match=r"graph\.dg: \d+ bytes; expected \d+; damaged"):
            Bundle.open(directory)


def test_an_edited_description_is_refused(own):
    directory = rewrite(own, lambda fields: None)
    path = directory / DESCRIPTION
    path.write_text(path.read_text().replace('"acweight": 0.5', '"acweight": 0.6'))
    with pytest.raises(FormatError, match=r"bundle\.json: wrong checksum; the description is damaged or was edited"):
        Bundle.open(directory)


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("version", 2, "bundle of version 2; expected 1; make the bundle again"),
        ("version", True, "bundle of version True; expected 1"),
        ("format", "zip", "no format 'argonaut-bundle'"),
        ("window", 4, "window is '4'; expected an odd number"),
        ("window", 10**9, "window is '1000000000'; expected a whole number, 1 to 1001"),
        ("sample_rate", 0, "sample_rate is '0'; expected a whole number"),
        ("sample_rate", 16000.0, "sample_rate is '16000.0'; expected a whole number"),
        ("name", "a\nb", "name is .*; expected text of at most 1000 characters in one line"),
        ("options", {"beam": "wide"}, "options: 'beam' is 'wide'; expected search options"),
        ("options", {"partial": 1}, "options: 'partial' is '1'; expected search options"),
        ("hcopy", {"TARGETKIND": 1}, "hcopy: 'TARGETKIND' is '1'; expected settings of HCopy"),
        ("silence", "sil", "silence is 'sil'; expected null, or names of models"),
        ("errors", [{}], "errors is .*; expected objects with test_set"),
        ("features", {"version": 9}, "version of the record of features is '9'"),
        ("members", None, "member 'None'; expected name, size and crc32"),
        ("members", [{"name": "../graph.dg", "size": 0, "crc32": []}], r"member '\.\./graph\.dg'; expected each of"),
        (
            "members",
            [{"name": "graph.dg", "size": 1, "crc32": []}],
            "member graph.dg: size 1 or its checksums are wrong",
        ),
        ("members", [], "no member graph.dg; expected one"),
        ("more", 1, "unknown field 'more'; expected the fields of version 1"),
    ],
)
def test_fields_of_the_description_are_checked(field, value, message, own):
    directory = rewrite(own, lambda fields: fields.update({field: value}))
    with pytest.raises(FormatError, match=message):
        Bundle.open(directory)


def test_a_missing_field_is_named(own):
    directory = rewrite(own, lambda fields: fields.pop("licence"))
    with pytest.raises(FormatError, match="no field 'licence'"):
        Bundle.open(directory)


@pytest.mark.parametrize(
    ("name", "method", "message"),
    [
        ("../escape", zipfile.ZIP_STORED, r"member '\.\./escape'; expected bundle\.json"),
        ("/etc/passwd", zipfile.ZIP_STORED, "member '/etc/passwd'; expected bundle"),
        ("topology", zipfile.ZIP_DEFLATED, "member topology is compressed or encrypted"),
        ("topology", zipfile.ZIP_STORED, "not at a multiple of 64"),
        ("graph.dg", zipfile.ZIP_STORED, "member 'graph.dg'; expected .* at most once"),
    ],
)
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_members_that_pack_does_not_write_are_refused(name, method, message, own):
    with zipfile.ZipFile(own, "a", method) as archive:
        archive.writestr(name, b"x" * 1000)
    with pytest.raises(FormatError, match=message):
        Bundle.open(own)


def test_a_link_in_a_directory_is_refused(own):
    directory = rewrite(own, lambda fields: None)
    outside = directory.parent / "outside"
    shutil.move(directory / "graph.dg", outside)
    (directory / "graph.dg").symlink_to(outside)
    with pytest.raises(FormatError, match=r"graph\.dg: a link or no file"):
        Bundle.open(directory)


def test_other_files_are_no_bundles(own, tmp_path, small_system):
    other = tmp_path / "other.zip"
    with zipfile.ZipFile(other, "w") as archive:
        archive.writestr("a.txt", "text")
    (tmp_path / "text").write_text("words\n")
    assert is_bundle(own)
    assert not any(map(is_bundle, (other, tmp_path / "text", tmp_path, tmp_path / "missing", small_system / "dict")))
    with pytest.raises(FormatError, match="neither a directory nor a zip file; expected a bundle"):
        Bundle.open(tmp_path / "text")
    with pytest.raises(FormatError, match=r"no bundle\.json; expected a bundle, which argonaut pack makes"):
        Bundle.open(tmp_path)
    with pytest.raises(FileNotFoundError):
        Bundle.open(tmp_path / "missing")


@pytest.mark.skipif(os.name == "nt", reason="has no named pipes")
def test_a_pipe_is_no_bundle(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(FormatError, match="neither a directory nor a zip file; expected a bundle"):
        Bundle.open(tmp_path / "pipe")
    with pytest.raises(FormatError, match="a device or a pipe; expected a file that Argonaut reads"):
        describe_file(tmp_path / "pipe")


@pytest.mark.parametrize(
    ("header", "message"),
    [
        (
            {"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 16]}},
            "'data_offsets': \\[0, 16\\]",
        ),
        ({"a": {"dtype": "F32", "shape": [4], "data_offsets": [8, 24]}}, "a tensor at 8 of the data instead of 0"),
        ({name: {"dtype": "F32", "shape": [4], "data_offsets": [0, 16]} for name in "ab"}, "at 0 of the data .* 16"),
        ({"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}, "16 bytes of tensors instead of 8"),
        ({"a": {"dtype": "F32", "shape": [-2, -2], "data_offsets": [0, 16]}}, "'shape': \\[-2, -2\\]"),
        ({"a": {"dtype": "BF16", "shape": [8], "data_offsets": [0, 16]}}, "of type BF16"),
        ({"a": {"shape": [4]}}, "tensor described by {'shape': \\[4\\]}; expected a model"),
        ({"a": 1}, "tensor described by 1; expected a model"),
    ],
)
def test_a_damaged_model_in_a_part_is_refused(header, message, tmp_path):
    text = json.dumps(header | {"__metadata__": {"argonaut": "{}"}}).encode()
    path = tmp_path / "file"
    path.write_bytes(b"-" * 64 + struct.pack("<Q", len(text)) + text + bytes(16))
    with pytest.raises(ModelError, match=message):
        load_model(FilePart(path, 64, path.stat().st_size - 64, "model"))


def test_a_part_beyond_the_end_of_its_file_is_refused(tmp_path):
    (tmp_path / "file").write_bytes(b"12345")
    for read in (FilePart.read_bytes, FilePart.map):
        with pytest.raises(FormatError, match="truncated"):
            read(FilePart(tmp_path / "file", 2, 4, "member"))
        assert bytes(read(FilePart(tmp_path / "file", 2, 3, "member"))) == b"345"
