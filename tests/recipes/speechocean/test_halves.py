"""Networks for halves of the speakers: what each of them hears."""

from types import SimpleNamespace

from readers.common.files import write_lines
from readers.corpora.directory import SPEAKERS
from readers.htk.scp import read_scp
from recipes.own.networks import CrossEntropy
from recipes.speechocean.halves import Half, Halves


def test_each_half_hears_the_other_speakers_and_there_are_none_without_recordings(tmp_path, monkeypatch, capsys):
    speakers = {f"u{number}": f"s{number % 4}" for number in range(8)}
    write_lines(tmp_path / "corpus" / SPEAKERS, (f"{name} {speaker}" for name, speaker in speakers.items()))
    trained = []
    monkeypatch.setattr(CrossEntropy, "train", lambda half, *settings: trained.append(settings) or 0)
    monkeypatch.setattr(Half, "pack", lambda half: 0)
    halves = Halves.of(SimpleNamespace(out=tmp_path, facts=SimpleNamespace(frames=8000)), ["s0", "s1", "s2", "s3"])
    for heard, expected in ((speakers, 2), ({name for name in speakers if speakers[name] in ("s1", "s3")}, 0)):
        trained.clear()
        write_lines(tmp_path / "lists" / "train.scp", (f"{name}=features/{name}.fea[0,999]" for name in sorted(heard)))
        assert halves.train() == 0
        assert len(trained) == expected
    assert "all utterances of the training are of one half of the speakers: no networks" in capsys.readouterr().out
    half = read_scp(tmp_path / "lists" / "train.half0.scp")
    assert [entry.key for entry in half] == ["u1", "u3", "u5", "u7"]
