"""What readers.md shows works: its reader and writer, as files and from a package; its blocks."""

import re
import sys
from pathlib import Path

import numpy as np
import pytest

from readers.common import extensions
from readers.common.extensions import VARIABLE
from readers.config.config import Config
from readers.errors import ConfigError
from readers.htk.parameter_file import parse_kind, write_htk
from readers.minibatches.base import READERS, WRITERS, Reader, Writer, open_reader, reader_class, writer_class
from readers.sources.frames.htk_mlf_options import ReaderOptions
from readers.sources.frames.stream_options import HTKFeatureOptions, LabelOptions
from readers.writers.text_writer import TextFormat
from recipes.cli import cntk
from tests.docs.pages import page_text
from tests.readers.tables.dbn_files import dbn_bytes

PAGE = page_text("readers")
FENCED = re.findall(r"^```(\w*)\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
PYTHON = {code.split("\n", 1)[0][2:]: code for language, code in FENCED if language == "python"}
BLOCKS = [text for language, text in FENCED if not language]


def block(start: str) -> str:
    (found,) = [text for text in BLOCKS if start in text]
    return found


@pytest.fixture
def modules(tmp_path, monkeypatch):
    """The files of the page, on the path."""
    for name, code in PYTHON.items():
        (tmp_path / name).write_text(code)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(VARIABLE, "")
    yield tmp_path
    for name in PYTHON:
        sys.modules.pop(name.removesuffix(".py"), None)
    extensions._packages.cache_clear()


def make_data(directory: Path) -> None:
    x = np.random.default_rng(0).normal(size=(120, 2))
    np.savez(directory / "data.npz", x=x, y=(x[:, 0] > 0).astype(np.int64))


def test_reader_and_writer_of_ones_own_train_and_write(modules, capsys):
    make_data(modules)
    reader = block("readerType=NpzReader")
    (modules / "own.cntk").write_text(
        "command=Train:Write\ndeviceId=-1\nmodelPath=model/net\noutputNodeNames=HLast\n"
        "Train=[\naction=train\nSimpleNetworkBuilder=[layerSizes=2:4:2;evalCriterion=ErrorPrediction;initValueScale=8]\n"
        f"SGD=[maxEpochs=5;minibatchSize=10;learningRatesPerMB=0.5]\n{reader}]\n"
        f"Write=[\naction=write\n{reader}writer=[\nwriterType=NpyWriter\ndirectory=out\n]\n]\n"
    )
    files = ["--extension", "npz_reader.py", "--extension=npy_writer.py"]
    assert cntk.main(["configFile=own.cntk", *files]) == 0
    assert "records: 120 done, 0 skipped, 0 failed" in capsys.readouterr().err
    written = np.load(modules / "out" / "data.HLast.npy")
    assert (written.argmax(axis=1) == np.load("data.npz")["y"]).mean() > 0.9
    assert (
        cntk.main(["configFile=own.cntk", "command=Train", "makeMode=false", "Train=[reader=[features=[array=z]]]"])
        == 2
    )
    assert "data.npz has no z; expected one of x, y" in capsys.readouterr().err


def test_reader_and_writer_of_another_package(modules, monkeypatch):
    make_data(modules)
    (toml,) = [text for language, text in FENCED if language == "toml"]
    install(modules, monkeypatch, toml)
    text = block("readerType=NpzReader").replace("NpzReader", "npzreader")
    config = Config.from_text(text, "e.cntk").block("reader")
    assert reader_class(config).__name__ == "NpzReader"
    assert open_reader(config).dims() == {"features": 2, "labels": 2}
    assert writer_of("NpyWriter").__name__ == "NpyWriter"
    with pytest.raises(ConfigError, match=r"e.cntk:2: writerType NpxWriter is unknown; .*NpyWriter.*did you mean NpyW"):
        writer_of("NpxWriter")


def install(directory, monkeypatch, toml: str) -> None:
    """Install a package that declares these entry points for modules in the directory."""
    points = re.sub(r'\[project.entry-points."(.*?)"\]', r"[\1]", toml).replace("my_package.", "").replace('"', "")
    info = directory / "my_package-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: my-package\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(points)
    monkeypatch.syspath_prepend(directory)
    extensions._packages.cache_clear()


def writer_of(name: str) -> type:
    return writer_class(Config.from_text(f"writer=[\nwriterType={name}\n]", "e.cntk").block("writer"))


@pytest.mark.parametrize(
    ("point", "message"),
    [
        (
            "nowhere",
            "^extension of my-package: nowhere: ModuleNotFoundError: .*; expected a module that can be",
        ),
        ("npy_writer:NpyWriter", "^extension of my-package: npy_writer:NpyWriter; expected the name of a module"),
    ],
)
def test_a_package_that_cannot_be_imported_is_named(modules, monkeypatch, point, message):
    install(modules, monkeypatch, f'[project.entry-points."argonaut.extensions"]\nmine = "{point}"\n')
    with pytest.raises(ConfigError, match=message):
        writer_of("NpyWriter")


def test_a_configuration_names_no_code(modules, monkeypatch):
    """Neither modules of the standard library nor files beside the configuration are imported for it."""
    (modules / "evil.py").write_text("open('was_here', 'w').close()\n")
    monkeypatch.syspath_prepend(modules)
    for name in ("evil:Evil", "os:system", "npy_writer:NpyWriter", "readers.writers.text_writer:TextWriter"):
        with pytest.raises(ConfigError, match=r"e.cntk:2: writerType .* names a module; expected .* --extension"):
            writer_of(name)
    for name in ("evil", "evil.Evil", "system"):
        with pytest.raises(ConfigError, match=f"e.cntk:2: writerType {name} is unknown"):
            writer_of(name)
    assert not (modules / "was_here").exists()
    assert "evil" not in sys.modules


def test_only_readers_and_writers_of_an_extension_are_taken(modules, monkeypatch):
    (modules / "mine.py").write_text(
        "from readers.minibatches import Reader, Writer\nfrom subprocess import Popen\n\n\nclass Other:\n    pass\n\n\n"
        "class Mine(Writer):\n    pass\n"
    )
    monkeypatch.setenv(VARIABLE, str(modules / "mine.py"))
    assert writer_of("mine").__name__ == "Mine"
    for name in ("Other", "Popen", "Reader", "Writer"):
        with pytest.raises(ConfigError, match=f"writerType {name} is unknown"):
            writer_of(name)
    with pytest.raises(ConfigError, match="readerType Mine is unknown"):
        reader_class(Config.from_text("reader=[\nreaderType=Mine\n]", "e.cntk").block("reader"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--extension"], "error: --extension: nothing follows; expected the path of a .py file"),
        (
            ["--extension", "nowhere.py"],
            "error: --extension nowhere.py: no such Python file; expected the path of a .py file",
        ),
        (
            ["--extension=broken.py"],
            "error: --extension broken.py: ZeroDivisionError: division by zero; expected a module",
        ),
        (["--extension=own.cntk"], "error: --extension own.cntk: no such Python file; expected the path of a .py file"),
    ],
)
def test_extensions_that_are_none_are_named(modules, capsys, arguments, message):
    (modules / "broken.py").write_text("1 / 0\n")
    (modules / "own.cntk").write_text("Test=[action=test\nmodelPath=m\nreader=[readerType=Mine]]\n")
    assert cntk.main(["configFile=own.cntk", "command=Test", *arguments]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert message in line


@pytest.mark.parametrize("name", READERS)
def test_every_reader_keeps_the_interface(name):
    assert issubclass(reader_class(Config.from_text(f"readerType={name.lower()}", "r")), Reader)


@pytest.mark.parametrize("name", WRITERS)
def test_every_writer_keeps_the_interface(name):
    assert issubclass(writer_class(Config.from_text(f"writerType={name.lower()}", "w")), Writer)


def test_every_reader_and_writer_is_in_a_table():
    for name in (*READERS, *WRITERS):
        assert f"| `{name}`" in PAGE


def test_blocks_of_the_page_read(modules):
    (modules / "train.txt").write_text("0.5 1 yes\n1 2 no\n")
    reader = open_reader(Config.from_text(block("readerType=UCIFastReader"), "p").block("reader"))
    assert reader.dims() == {"features": 2, "labels": 2}
    assert reader.warnings == []
    text_format = TextFormat.from_config(Config.from_text(block("outputPath=out"), "p").block("Write").block("format"))
    assert text_format.sequence("N", np.array([[1, 0.0], [0, 2]]), "utt", 1, 0) == "utt yes no\n"


def test_frames_and_lists_of_the_page_belong_together(modules):
    samples = {language: text for language, text in FENCED if language in ("scp", "mlf", "states")}
    paths = {"scp": "lists/train.scp", "mlf": "labels/train.mlf", "states": "labels/states.list"}
    for language, path in paths.items():
        (modules / path).parent.mkdir(exist_ok=True)
        (modules / path).write_text(samples[language])
    (modules / "feat").mkdir()
    for name, frames in (("day1", 21), ("u3", 10)):
        write_htk(modules / "feat" / f"{name}.fbank", np.ones((72, frames)), parse_kind("FBANK_D_A"))
    reader = open_reader(Config.from_text(block("readerType=HTKMLFReader"), "p").block("reader"))
    assert (reader.skipped, reader.warnings, reader.num_frames) == ([], [], 12 + 9 + 10)
    assert reader.dims() == {"features": 792, "labels": 3}
    reader.close()


def test_every_name_of_the_default_reader_is_in_its_sections():
    section = PAGE[PAGE.index("## Frames with their states") : PAGE.index("## Text: UCIFastReader")]
    names = [name for options in (ReaderOptions, HTKFeatureOptions, LabelOptions) for name in options.option_keys()]
    assert {name for name in names if f"`{name}" not in section} == {"readerType"}


def test_data_actions_of_the_page_run(modules):
    (modules / "corpus.txt").write_text("a b a c\nb a\n" * 3)
    (modules / "old.dbn").write_bytes(dbn_bytes([0], [1], [("perceptron", np.ones((2, 3)), np.ones(2))], [0.5, 0.5]))
    (modules / "page.cntk").write_text(block("action=writeWordAndClass") + block("action=convertDBN"))
    assert cntk.main(["configFile=page.cntk", "command=Words:Convert", "deviceId=-1", "Words=[nbrClass=2]"]) == 0
    assert (modules / "vocabulary").read_text() == (
        "     0\t     9\ta\t0\n     1\t     6\t</s>\t1\n     2\t     6\tb\t1\n     3\t     3\t<unk>\t1\n"
    )
    assert (modules / "exp" / "converted").exists()


def test_kaldi_block_of_the_page_reads(modules):
    import kaldiio

    lengths = {"a": 4, "b": 5}
    kaldiio.save_ark("feats.ark", {key: np.ones((n, 40), np.float32) for key, n in lengths.items()}, scp="feats.scp")
    kaldiio.save_ark("ivectors.ark", {key: np.ones((1, 100), np.float32) for key in ("b", "a")})
    for key, n in lengths.items():
        number = {"a": 1, "b": 2}[key]
        Path(f"pdf.{number}.gz").write_text(f"{key} {'7 ' * n}\n")
    reader = open_reader(Config.from_text(block("readerType=KaldiReader"), "p").block("reader"))
    assert reader.dims() == {"fbank": 440, "ivector": 100, "labels": 2016}
    assert (reader.num_frames, reader.skipped, reader.warnings) == (9, [], [])
