"""Kaldi's configuration files, and the frame subsampling that files beside a model tell."""

import pytest

from readers.errors import ConfigError, FormatError
from readers.kaldi.option_files import frame_subsampling, numbers_of_frames, read_arguments, read_options


def test_options_are_read(tmp_path):
    path = tmp_path / "mfcc.conf"
    path.write_text("# hires\n--num-ceps=40 # all\n\n--use_energy=false\n--allow-upsample\n--num-ceps=39\n")
    assert read_options(path) == {"num-ceps": "39", "use-energy": "false", "allow-upsample": "true"}


def test_arguments_and_configurations_are_read_alike(tmp_path):
    path = tmp_path / "online_cmvn.conf"
    assert read_arguments(path) == {}
    path.write_text("# configuration file for apply-cmvn-online\n--cmn-window=300 --norm_means=true # all\r\n")
    options = read_arguments(path)
    assert options == {"cmn-window": "300", "norm-means": "true"}
    assert numbers_of_frames(path, options, {"cmn-window": 600, "global-frames": 200}) == {
        "cmn-window": 300,
        "global-frames": 200,
    }
    for text in ("-1", "1.5", "10001", "9" * 5000):
        with pytest.raises(ConfigError, match=rf"conf: cmn-window is '{text[:40]}'; expected a number from 0 to 10000"):
            numbers_of_frames(path, {"cmn-window": text}, {"cmn-window": 600})


@pytest.mark.parametrize("line", ["num-ceps=40", "--num ceps=4", "-n=4", "--=4"])
def test_other_lines_are_refused(tmp_path, line):
    path = tmp_path / "mfcc.conf"
    path.write_text(f"--low-freq=20\n{line}\n")
    with pytest.raises(FormatError, match=rf"mfcc.conf:2: '{line}'; expected two hyphens, a name, = and a value"):
        read_options(path)


def test_subsampling_is_found_beside_the_model(tmp_path):
    model = tmp_path / "am" / "final.mdl"
    model.parent.mkdir()
    assert frame_subsampling(model) == 1
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "model.conf").write_text("--beam=10\n--frame-subsampling-factor=3\n")
    assert frame_subsampling(model) == 3
    factor = model.parent / "frame_subsampling_factor"
    factor.write_text("2\n")
    assert frame_subsampling(model) == 2
    for text in ("0", "101", "-3", "three", ""):
        factor.write_text(f"{text}\n")
        with pytest.raises(FormatError, match=f"frame subsampling by '{text}'; expected 1 to 100"):
            frame_subsampling(model)
