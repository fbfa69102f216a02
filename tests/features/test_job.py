"""The HCopy job and its command: files in parallel, losses named, nothing half-written."""

import dataclasses
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import soundfile

from features import FeatureConfig, HcopyOptions, extract, extract_files, hcopy
from features.copying.files import FILES_PER_PROCESS
from features.settings import REFUSED, SETTINGS, WITHOUT_EFFECT
from readers.audio.audio_file import read_audio, write_sphere, write_wav
from readers.common.jobs.places import BLAS_THREAD_VARIABLES
from readers.common.jobs.runner import thread_runner
from readers.errors import ConfigError
from readers.htk.parameter_file import kind_name, read_htk, read_htk_header
from readers.htk.scp import read_scp
from recipes.cli.main import main

CONFIG = FeatureConfig(target_kind="FBANK_D", num_channels=12, save_with_crc=False)
RATE = 8000


def write_audio(directory, count, seed=0):
    """count short WAV files; returns (source, target) pairs."""
    rng = np.random.default_rng(seed)
    pairs = []
    for i in range(count):
        source = directory / f"utt{i:02}.wav"
        write_wav(source, rng.integers(-3000, 3000, 1000 + 80 * i), RATE)
        pairs.append((source, directory / "feat" / f"utt{i:02}.fbank"))
    return pairs


@pytest.mark.parametrize("workers", [1, 2])
def test_hcopy_writes_what_extract_computes(tmp_path, workers):
    pairs = write_audio(tmp_path, FILES_PER_PROCESS + 2)
    calls = []
    report = extract_files(pairs, CONFIG, workers, lambda done, total: calls.append((done, total)))
    assert (report.num_done, report.lost, report.exit_status) == (len(pairs), [], 0)
    assert calls[-1] == (len(pairs), len(pairs))
    for source, target in pairs:
        written = read_htk(target)
        np.testing.assert_array_equal(written.frames, extract(read_audio(source)[0], CONFIG, RATE))
        assert (kind_name(written.kind), written.period) == ("FBANK_D", 100000)


def test_hcopy_takes_parts_of_files(tmp_path):
    samples = np.random.default_rng(0).integers(-3000, 3000, (6000, 2)).astype(np.int16)
    soundfile.write(tmp_path / "long.wav", samples, RATE)
    source = f"{tmp_path}/long.wav"
    pairs = [(f"{source}[0,1999,0]", tmp_path / "a.fb"), (f"{source}[1000,5999,1]", tmp_path / "b.fb")]
    bad = [(f"{source}[0,6000,1]", tmp_path / "c.fb"), (f"{source}[0,99,2]", tmp_path / "d.fb")]
    report = extract_files([*pairs, *bad], CONFIG, 1)
    for path, part in ((tmp_path / "a.fb", samples[:2000, 0]), (tmp_path / "b.fb", samples[1000:, 1])):
        np.testing.assert_array_equal(read_htk(path).frames, extract(part, CONFIG, RATE))
    assert report.lost == [
        (bad[0][0], "failed", f"{source}: samples [0,6000] of 6000; expected a part of the file"),
        (bad[1][0], "failed", f"{source}: channel 2 of 2; expected 0 to 1, or mix"),
    ]


def test_hcopy_bad_files_do_not_take_the_others(tmp_path):
    pairs = write_audio(tmp_path, 4)
    raw = (tmp_path / "utt00.wav").read_bytes()
    bad = {
        "empty.wav": (b"", "empty file"),
        "cut.wav": (raw[:300], "128 samples; expected at least 204, one window"),
        "junk.wav": (b"no audio at all, only text in a file that is long enough", "expected"),
    }
    for name, (content, _) in bad.items():
        (tmp_path / name).write_bytes(content)
    write_wav(tmp_path / "short.wav", np.ones(100), RATE)
    write_wav(tmp_path / "rate.wav", np.ones(4000), 7000)
    bad |= {
        "short.wav": (b"", "100 samples; expected at least 204, one window"),
        "rate.wav": (
            b"",
            "sample rate 7000 Hz; expected at least 8000 Hz, from SOURCERATE = 1250; the option upsample",
        ),
        "missing.wav": (b"", "No such file"),
    }
    names = list(bad)
    mixed = [(tmp_path / name, tmp_path / "feat" / f"{name}.fbank") for name in names]
    config = FeatureConfig(target_kind="FBANK_D", num_channels=12, source_rate=1250.0)
    report = extract_files(pairs[:2] + mixed + pairs[2:], config, workers=1)
    assert (report.num_done, report.num_failed, report.exit_status) == (4, len(bad), 1)
    assert [name for name, _, _ in report.lost] == [str(tmp_path / name) for name in names]
    for (name, _, reason), (_, expected) in zip(report.lost, bad.values()):
        assert reason.startswith(name)
        assert expected in reason
    assert sorted(path.name for path in (tmp_path / "feat").iterdir()) == [
        "features.fbank.json",
        *(f"utt{i:02}.fbank" for i in range(4)),
    ]


def test_hcopy_two_sources_for_one_target_and_a_target_that_is_its_source(tmp_path):
    pairs = write_audio(tmp_path, 2)
    target = pairs[0][1]
    report = extract_files([pairs[0], (pairs[1][0], target), (pairs[1][0], pairs[1][0])], CONFIG, workers=1)
    assert report.num_done == 1
    reasons = {reason.split("; ")[0] for _, _, reason in report.lost}
    assert f"{target}: also the target of {pairs[0][0]}" in reasons
    assert f"{pairs[1][0]}: target and source are the same" in reasons
    assert read_htk(target).frames.shape[1] == (1000 - 204) // 80 + 1


def test_the_job_reads_the_configuration_once_and_writes_a_list_and_a_report(tmp_path):
    pairs, config = write_audio(tmp_path, 2), tmp_path / "hcopy.config"
    config.write_text("TARGETKIND = FBANK_D\nNUMCHANS = 12\nSAVEWITHCRC = F\n")
    calls = []
    options = HcopyOptions(config=config, files=pairs[0], script=tmp_path / "list", scp=tmp_path / "scp")
    (tmp_path / "list").write_text(f"{pairs[1][0]} {pairs[1][1]}\n")
    assert options.features == dataclasses.replace(CONFIG, target_kind="FBANK_D")
    config.unlink()
    result = hcopy(options, progress=lambda done, total: calls.append((done, total)))
    assert (result.report.num_done, result.report_path) == (2, tmp_path / "feat" / "hcopy.report")
    assert result.report_path.exists()
    assert [entry.path for entry in read_scp(tmp_path / "scp")] == [str(target) for _, target in pairs]
    assert calls == [(1, 2), (2, 2)]
    np.testing.assert_array_equal(read_htk(pairs[1][1]).frames, extract(read_audio(pairs[1][0])[0], CONFIG, RATE))


def test_hcopy_takes_any_runner(tmp_path):
    pairs = write_audio(tmp_path, FILES_PER_PROCESS + 1)
    runner = thread_runner(2)
    assert extract_files(pairs, CONFIG, runner=runner).exit_status == 0
    assert list(runner.results(int, ["7"])) == [7]  # still open: it is the caller's
    runner.close()


INTERRUPTED = """
import sys
from concurrent.futures import Future
from recipes.cli.main import main
from tests.readers.common.interrupting import InterruptingCondition

if __name__ == "__main__":
    create = Future.__init__
    def interrupting(self):
        create(self)
        self._condition = InterruptingCondition()
    Future.__init__ = interrupting
    sys.exit(main(["hcopy", "-C", "hcopy.config", "-S", "list.scp", "-j", "2"]))
"""


def test_an_interrupted_command_ends(tmp_path):
    """Even when Ctrl-C comes while the lock of a task is held, which the pool of processes then could not take."""
    pairs = write_audio(tmp_path, 3 * FILES_PER_PROCESS)
    (tmp_path / "hcopy.config").write_text("TARGETKIND = FBANK\nNUMCHANS = 15\n")
    (tmp_path / "list.scp").write_text("".join(f"{source} {target}\n" for source, target in pairs))
    (tmp_path / "interrupted.py").write_text(INTERRUPTED)
    command = subprocess.run(
        [sys.executable, "interrupted.py"],
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (command.returncode, command.stderr) == (130, "interrupted\n")
    assert not list(tmp_path.rglob("*.tmp"))


def test_hcopy_options_that_do_not_fit_sourcerate_stop_before_any_file(tmp_path):
    config = FeatureConfig(source_rate=1250.0, high_frequency=8000.0)
    with pytest.raises(ConfigError, match="HIFREQ = 8000; expected at most 4000 Hz"):
        extract_files(write_audio(tmp_path, 1), config)
    assert not (tmp_path / "feat").exists()


def test_hcopy_leaves_the_environment_as_it_was(tmp_path, monkeypatch):
    monkeypatch.setenv(BLAS_THREAD_VARIABLES[0], "7")
    monkeypatch.delenv(BLAS_THREAD_VARIABLES[1], raising=False)
    before = dict(os.environ)
    extract_files(write_audio(tmp_path, FILES_PER_PROCESS + 1), CONFIG, 2)
    assert dict(os.environ) == before


def run_command(tmp_path, lines, *options):
    (tmp_path / "hcopy.config").write_text("TARGETKIND = MFCC_0  # comment\nNUMCHANS = 15\nSAVECOMPRESSED = T\n")
    (tmp_path / "list.scp").write_text("\n".join(lines) + "\n")
    return main(["hcopy", "-C", str(tmp_path / "hcopy.config"), "-S", str(tmp_path / "list.scp"), *options])


def test_command_all_well_is_status_0(tmp_path, capsys):
    pairs = write_audio(tmp_path, 3)
    write_sphere(tmp_path / "sphere.WAV", np.arange(2000) % 500, RATE)
    lines = [f"{source} {target}" for source, target in pairs]
    positional = [str(tmp_path / "sphere.WAV"), str(tmp_path / "feat" / "sphere.mfc")]
    assert run_command(tmp_path, lines, "-v", *positional) == 0
    captured = capsys.readouterr()
    assert captured.out == "files: 4 done, 0 skipped, 0 failed\n"
    assert "MFCC_0: 13 values a frame" in captured.err
    assert (tmp_path / "feat" / "hcopy.report").read_text() == "# files: 4 done, 0 skipped, 0 failed\n"
    assert kind_name(read_htk(positional[1]).kind) == "MFCC_C_K_0"


def test_command_names_losses_and_gives_status_1(tmp_path, capsys):
    pairs = write_audio(tmp_path, 1)
    lines = [f"{source} {target}" for source, target in pairs]
    lines += [f"{tmp_path}/absent{i} {tmp_path}/feat/absent{i}.mfc" for i in range(7)]
    assert run_command(tmp_path, lines, "--report", str(tmp_path / "lost.txt")) == 1
    captured = capsys.readouterr()
    assert captured.out == "files: 1 done, 0 skipped, 7 failed\n"
    assert captured.err.count("failed: ") == 5
    assert f"and 2 more, listed in {tmp_path}/lost.txt" in captured.err
    assert len((tmp_path / "lost.txt").read_text().splitlines()) == 8


def test_command_nothing_done_is_status_2(tmp_path, capsys):
    assert run_command(tmp_path, [f"{tmp_path}/absent {tmp_path}/feat/absent.mfc"]) == 2
    assert capsys.readouterr().out == "files: 0 done, 0 skipped, 1 failed\n"


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ("TARGETKIND = MFCC\nNUMCHAN = 3\n", r"hcopy.config:2: unknown name NUMCHAN"),
        ("TARGETKIND = MFCC\nMATTRANFN = x\n", r"hcopy.config:2: MATTRANFN = x is not supported"),
        ("TARGETKIND = MFCC_D_T\n", r"hcopy.config:1: TARGETKIND = MFCC_D_T; expected _A"),
    ],
)
def test_command_faulty_configuration_is_one_line_and_status_2(tmp_path, capsys, config, message):
    (tmp_path / "hcopy.config").write_text(config)
    assert main(["hcopy", "-C", str(tmp_path / "hcopy.config"), "a.wav", "a.mfc"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert message in captured.err
    assert captured.err.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "FILE is not given; expected source and target in turn, or --script"),
        (["a.wav"], "a.wav has no target"),
        (["-j", "0", "a.wav", "a.mfc"], "command line: --workers is 0; expected at least 1"),
    ],
)
def test_command_faulty_arguments(tmp_path, capsys, arguments, message):
    (tmp_path / "hcopy.config").write_text("TARGETKIND = MFCC\n")
    assert main(["hcopy", "-C", str(tmp_path / "hcopy.config"), *arguments]) == 2
    assert message in capsys.readouterr().err


def test_help_lists_every_configuration_name(capsys):
    with pytest.raises(SystemExit, match="0"):
        main(["hcopy", "--help"])
    titles = ("parameters of the configuration:", "(-v shows why):", "unless they have HTK's default:")
    parts = re.split("|".join(map(re.escape, titles)), capsys.readouterr().out.replace("\n", " "))
    for part, names in zip(parts[1:], (SETTINGS, WITHOUT_EFFECT, REFUSED), strict=True):
        assert set(names) <= {name.strip(" ,") for name in part.split()}


def test_natural_write_order_is_that_of_the_machine(tmp_path):
    pairs = write_audio(tmp_path, 1)
    config = dataclasses.replace(CONFIG, natural_write_order=True)
    assert extract_files(pairs, config, 1).exit_status == 0
    header = read_htk_header(pairs[0][1])
    assert header.byte_order == ("<" if sys.byteorder == "little" else ">")
    np.testing.assert_array_equal(read_htk(pairs[0][1]).frames, extract(read_audio(pairs[0][0])[0], CONFIG, RATE))
    assert extract_files(pairs, CONFIG, 1).exit_status == 0
    assert read_htk_header(pairs[0][1]).byte_order == ">"


def test_stereo_mode_selects_a_channel(tmp_path):
    samples = np.random.default_rng(3).integers(-3000, 3000, (2000, 2)).astype(np.int16)
    soundfile.write(tmp_path / "two.wav", samples, RATE)
    pairs = [(tmp_path / "two.wav", tmp_path / "two.fbank")]
    for channel in (0, 1):
        assert extract_files(pairs, dataclasses.replace(CONFIG, channel=channel), 1).exit_status == 0
        np.testing.assert_array_equal(read_htk(pairs[0][1]).frames, extract(samples[:, channel], CONFIG, RATE))
    assert "2 channels; expected one" in extract_files(pairs, CONFIG, 1).lost[0][2]


def test_a_file_that_ends_before_its_header_says_is_marked_once(tmp_path):
    ((source, target),) = write_audio(tmp_path, 1)
    content = source.read_bytes()
    source.write_bytes(content[:-3])
    parts = [(f"{source}[{first},{first + 399}]", tmp_path / f"{first}.fbank") for first in (0, 500)]
    report = extract_files([(source, target), *parts], CONFIG, 1)
    assert (report.num_done, report.exit_status) == (3, 0)
    note = f"{len(content) - 47} bytes of samples, its header says {len(content) - 44}; read to the end"
    assert report.marked == [(str(source), "irregular", note)]
