"""The first run after an installation compiles kernels: the user is told, and the time does not count as decoding."""

import pytest

from decoder.search import Decoder
from readers.common import environment
from readers.common.environment import Compilation, CompilationNotes, compilation
from recipes.cli import console
from tests.recipes.systems.argon_system import decode


@pytest.fixture
def compiled(monkeypatch):
    """A count of compiled kernels of its own, and a clock that only `compiled.kernel` moves."""
    now = [100.0]
    compiled = Compilation()

    def kernel(seconds: float, cache: str = "/cache/decoder_123") -> None:
        compiled.begin()
        now[0] += seconds
        compiled.end(cache)

    compiled.kernel = kernel
    monkeypatch.setattr(environment.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(console, "compilation", compiled)
    monkeypatch.setattr(environment, "LONG_COMPILATION", 1.0)
    return compiled


def test_long_compilations_are_announced_with_progress(compiled, capsys):
    def command() -> int:
        for _ in range(10):
            compiled.kernel(0.9)
        return 0

    assert console.run_guarded(command) == 0
    assert capsys.readouterr().err.splitlines() == [
        "compiling kernels, each once (all: argonaut warmup); they are kept in /cache",
        "compiling kernels: 8 after 7 s",
        "compiled 10 kernels in 9 s",
    ]


def test_short_compilations_are_not_mentioned(compiled, capsys):
    assert console.run_guarded(lambda: compiled.kernel(0.9) or 0) == 0
    assert capsys.readouterr().err == ""


def test_kernels_that_cannot_be_stored_are_not_called_kept(compiled, capsys):
    compiled.is_kept = False
    assert console.run_guarded(lambda: compiled.kernel(2.0) or 0) == 0
    assert capsys.readouterr().err.splitlines() == ["compiling kernels", "compiled 1 kernel in 2 s"]


def test_a_command_that_fails_ends_with_its_error(compiled, capsys):
    def command() -> int:
        compiled.kernel(2.0)
        raise OSError("disk full")

    assert console.run_guarded(command) == 2
    assert capsys.readouterr().err.splitlines()[-1] == "error: disk full"


def test_a_program_logs_that_kernels_are_compiled(compiled, caplog):
    compiled.observer = CompilationNotes(compiled, environment._log_note)
    for seconds in (0.4, 0.7, 0.1, 5.0):
        compiled.kernel(seconds)
    assert [(one.name, one.levelname, one.getMessage()) for one in caplog.records] == [
        ("argonaut", "WARNING", "compiling kernels, each once (all: argonaut warmup); they are kept in /cache"),
        ("argonaut", "WARNING", "compiling kernels: 4 after 6 s"),
    ]


def test_the_directory_of_kernels_is_named_as_the_user_knows_it():
    assert environment.kernel_directory("/opt/lm/__pycache__") == "directories such as /opt/lm/__pycache__"
    assert environment.kernel_directory("/home/me/.cache/numba/lm_123") == "/home/me/.cache/numba"


def test_the_real_time_factor_does_not_contain_compilation(made, tmp_path, capsys, monkeypatch):
    search = Decoder.decode

    def decode_first_time(decoder, scores):
        monkeypatch.setattr(compilation, "_finished", 1e6)  # seconds, more than this test has taken
        return search(decoder, scores)

    monkeypatch.setattr(Decoder, "decode", decode_first_time)
    assert decode(made, tmp_path, threads=1) == 0
    assert "real-time factor 0.000" in capsys.readouterr().out
