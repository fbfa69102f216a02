"""HTKMLFWriter: line by line with the reader's SCP, every file whole or not there."""

import numpy as np
import pytest

from readers.config.config import Config
from readers.errors import ArgonautError, ConfigError, FormatError, ShapeError
from readers.htk.parameter_file import USER, read_htk
from readers.minibatches.base import Utterance, open_writer
from readers.sources.frames.htk_mlf_reader import HTKMLFReader
from readers.writers.htk_mlf_writer import HTKMLFWriter


def writer_config(directory, text="", count=3) -> Config:
    (directory / "out.scp").write_text("".join(f"{directory}/deep/u{u}.llk\n" for u in range(count)))
    (directory / "hidden.scp").write_text("".join(f"{directory}/deep/u{u}.h\n" for u in range(count)))
    text = text or (
        f"ScaledLogLikelihood=[dim=2;scpFile={directory}/out.scp;type=Real]\n"
        f"L2.BFF.FF.P = [\ndim=3\nfile={directory}/hidden.scp]"
    )
    return Config.from_text(f"writer=[\nwriterType=HTKMLFWriter\n{text}\n]", "w.cntk").block("writer")


def utterance(line: int, period: int = 100000) -> Utterance:
    return Utterance(f"u{line}", {}, line, period)


def test_values_come_back_as_user_kind(tmp_path):
    writer = open_writer(writer_config(tmp_path))
    assert writer.nodes == ["ScaledLogLikelihood", "L2.BFF.FF.P"]
    assert writer.warnings == []
    rng = np.random.default_rng(0)
    values = {name: rng.standard_normal((dim, 5)) for name, dim in zip(writer.nodes, (2, 3))}
    assert writer.write(utterance(1), values) == {}
    for name, suffix in zip(writer.nodes, ("llk", "h")):
        back = read_htk(tmp_path / "deep" / f"u1.{suffix}")
        assert (back.kind, back.period) == (USER, 100000)
        np.testing.assert_array_equal(back.frames, values[name].astype(np.float32))
    assert sorted(path.name for path in (tmp_path / "deep").iterdir()) == ["u1.h", "u1.llk"]


def test_reader_and_writer_stay_in_step_over_a_bad_utterance(tiny):
    corpus = tiny((4, 4, 4))
    (corpus.directory / "features" / "u1.htk").unlink()
    config = writer_config(corpus.directory, f"out=[dim=15;scpFile={corpus.directory}/out.scp]")
    writer = HTKMLFWriter(config)
    reader = HTKMLFReader(corpus.config(), write=True)
    writer.check({"out": 15}, reader.num_utterances)
    for spoken in reader.utterances():
        writer.write(spoken, {"out": spoken.matrices["features"]})
    written = {path.name: read_htk(path).frames for path in (corpus.directory / "deep").iterdir()}
    assert sorted(written) == ["u0.llk", "u2.llk"]
    assert written["u2.llk"][:, 1].tolist() == corpus.column("features", 2, 1, 2, 2)


def test_the_list_of_a_reader_is_refused(tmp_path):
    config = writer_config(tmp_path)
    (tmp_path / "out.scp").write_text("a.llk\nu1.fb=feat/u1.fb[0,99]\n")
    with pytest.raises(FormatError, match=r"out.scp, entry 2: 'u1.fb=feat/u1.fb\[0,99\]' has a frame range; expected"):
        HTKMLFWriter(config)


def test_values_that_are_no_number_are_counted_and_written(tmp_path):
    writer = HTKMLFWriter(writer_config(tmp_path, f"out=[dim=2;scpFile={tmp_path}/out.scp]"))
    values = np.array([[0, np.nan, 1], [np.inf, 2, -np.inf]])
    assert writer.write(utterance(0), {"out": values}) == {"out": 3}
    np.testing.assert_array_equal(read_htk(tmp_path / "deep" / "u0.llk").frames, values)


def test_wrong_shape_writes_nothing(tmp_path):
    writer = HTKMLFWriter(writer_config(tmp_path, f"out=[dim=2;scpFile={tmp_path}/out.scp]"))
    with pytest.raises(ShapeError, match=r"u0.llk: node out gave shape \(3, 4\); expected \(2, frames\)"):
        writer.write(utterance(0), {"out": np.zeros((3, 4))})
    assert not (tmp_path / "deep").exists()


def test_period_is_the_readers(tmp_path):
    writer = HTKMLFWriter(writer_config(tmp_path, f"out=[dim=2;scpFile={tmp_path}/out.scp]"))
    writer.write(utterance(0, 50000), {"out": np.zeros((2, 1))})
    assert read_htk(tmp_path / "deep" / "u0.llk").period == 50000


@pytest.mark.parametrize(
    ("dims", "count", "kind", "message"),
    [
        (
            {"ScaledLogLikelihod": 2, "L2.BFF.FF.P": 3},
            3,
            ConfigError,
            "node ScaledLogLikelihood is not among .*did you mean",
        ),
        (
            {"ScaledLogLikelihood": 2, "L2.BFF.FF.P": 4},
            3,
            ShapeError,
            "node L2.BFF.FF.P has 4 rows; expected its dim, 3",
        ),
        ({"ScaledLogLikelihood": 2, "L2.BFF.FF.P": 3}, 4, FormatError, "out.scp: 3 paths for 4 utterances"),
    ],
)
def test_check_before_work_starts(tmp_path, dims, count, kind, message):
    writer = HTKMLFWriter(writer_config(tmp_path))
    writer.check({"ScaledLogLikelihood": 2, "L2.BFF.FF.P": 3}, 3)
    with pytest.raises(kind, match=message):
        writer.check(dims, count)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("dim=3", "writer has no outputs; expected a block named as a node"),
        ("out=[dim=2]", "w.cntk:3: writer.out.scpFile is not set"),
        ("out=[scpFile=x]", "writer.out.dim is not set"),
        ("out=[dim=2;scpFile=nix.scp]", "w.cntk:3: writer.out.scpFile: nix.scp: No such file"),
        ("out=[dim=20000;scpFile=x]", "dim is 20000; expected 1 to 16383"),
        ("out=[dim=2;scpFile=x;type=int]", "type is 'int'; expected real"),
        ("a=[dim=2;scpFile=OUT]\nb=[dim=2;scpFile=OUT]", "OUT, entry 1: .*u0.llk is also OUT, entry 1"),
    ],
)
def test_configuration_faults(tmp_path, text, message):
    config = writer_config(tmp_path, text.replace("OUT", f"{tmp_path}/out.scp"))
    with pytest.raises(ArgonautError, match=message.replace("OUT", f"{tmp_path}/out.scp")):
        HTKMLFWriter(config)


def test_unknown_names_are_reported(tmp_path):
    writer = HTKMLFWriter(writer_config(tmp_path, f"out=[dim=2;scpFile={tmp_path}/out.scp;scpFil=y]\nwritertyp=x"))
    assert writer.warnings == [
        "w.cntk:4: writer.writertyp is not known here; did you mean writerType",
        "w.cntk:3: writer.out.scpFil is not known here; did you mean scpFile",
    ]
