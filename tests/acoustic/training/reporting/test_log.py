"""Lines of the training log, character for character, and the history file."""

import signal

import pytest

from acoustic.training.evaluation import EvaluationTotals, figure_text
from acoustic.training.reporting import plots
from acoustic.training.reporting.log import (
    append_history,
    finished_line,
    minibatch_line,
    read_history,
    starting_line,
    validation_line,
)
from acoustic.training.reporting.plots import draw_history
from readers.common.jobs.stop_signals import stopped_by_signals
from readers.errors import FormatError


def totals_of(ce, err, num_frames):
    totals = EvaluationTotals(("ce", "err"))
    totals.add({"ce": ce, "err": err}, num_frames)
    return totals


def test_lines_read_as_the_tools_of_2016():
    window = totals_of(6400.0, 2048.0, 5120)
    assert (
        starting_line(3, 0.0005, 0.9, 9719.0)
        == "Starting Epoch 3: learning rate per sample = 0.000500  effective momentum = 0.900000"
        "  momentum as time constant = 9719.0 samples"
    )
    assert (
        minibatch_line(3, 9, (11, 20), 0.042, window, 0.51)
        == " Epoch[ 3 of 9]-Minibatch[  11-  20, 4.20%]: ce = 1.25000000 * 5120; err = 0.40000000 * 5120; "
        "time = 0.5100s; samplesPerSecond = 10039.2"
    )
    assert "Minibatch[  11-  20]: ce" in minibatch_line(3, 9, (11, 20), None, window, 0.51)
    assert (
        finished_line(3, 9, totals_of(108000.0, 35100.0, 90000), 270000, 0.0005, 12.5)
        == "Finished Epoch[ 3 of 9]: [Training] ce = 1.20000000 * 90000; err = 0.39000000 * 90000; "
        "totalSamplesSeen = 270000; learningRatePerSample = 0.0005; epochTime=12.5s"
    )
    assert (
        validation_line(3, 9, totals_of(10400.0, 3280.0, 8000))
        == "Finished Epoch[ 3 of 9]: [Validate] ce = 1.30000000 * 8000; err = 0.41000000 * 8000"
    )


@pytest.mark.parametrize(
    ("name", "total", "count", "text"),
    [
        ("ce", 1.0, 3, "ce = 0.33333333 * 3"),
        ("ce", 1e-7, 1, "ce = 1.00000000e-07 * 1"),  # %.8g would print 1e-07
        ("errs", 1.0, 8, "errs = 12.500% * 8"),
        ("ce", 0.0, 0, "ce = 0.00000000 * 0"),
    ],
)
def test_a_figure_is_fixed_exponential_or_percent(name, total, count, text):
    assert figure_text(name, total, count) == text


def row(epoch: int, loss: float) -> dict:
    return {"epoch": epoch, "training": {"ce": loss, "err": loss / 4}, "validation": {"ce": loss + 0.1}}


def test_history_replaces_rows_that_an_earlier_run_left(tmp_path):
    path = tmp_path / "m.history.jsonl"
    assert read_history(path) == []
    for epoch, loss in ((1, 3.0), (2, 2.0), (3, 1.0), (2, 1.9)):
        append_history(path, row(epoch, loss))
    assert read_history(path) == [row(1, 3.0), row(2, 1.9)]


@pytest.mark.parametrize("text", ["no json", "[1]", '{"loss": 1}', '{"epoch": "two"}', '{"epoch": 1e999}'])
def test_a_damaged_history_names_file_and_line(tmp_path, text):
    path = tmp_path / "m.history.jsonl"
    path.write_text('{"epoch": 1}\n' + text + "\n")
    with pytest.raises(FormatError, match=r"history\.jsonl:2: .*; expected a JSON object with an epoch"):
        read_history(path)


def test_picture_is_a_png_with_a_panel_per_figure(tmp_path):
    path = tmp_path / "m.png"
    draw_history([row(1, 3.0), row(2, 2.0)], path)
    data = path.read_bytes()
    assert data.startswith(b"\x89PNG")
    width, height = int.from_bytes(data[16:20], "big"), int.from_bytes(data[20:24], "big")
    assert width > 2 * height  # panels side by side


def test_errors_are_drawn_in_percent_beside_the_learning_rate(tmp_path, monkeypatch):
    drawn = []
    monkeypatch.setattr(plots, "save_figure", lambda figure, path: drawn.append(figure))
    rows = [
        {"epoch": k, "learning_rate_per_sample": 0.1 / k, "training": {"ce": 2.0 / k, "err": 0.5 / k}} for k in (1, 2)
    ]
    plots.draw_history(rows, tmp_path / "m.png")
    loss, error, rate = drawn[0].axes
    assert [line.get_ydata().tolist() for line in loss.lines] == [[2.0, 1.0]]
    assert [line.get_ydata().tolist() for line in error.lines] == [[50.0, 25.0]]
    assert error.get_ylabel() == "% of frames"
    assert [line.get_ydata().tolist() for line in rate.lines] == [[0.1, 0.05]]


def test_a_signal_while_a_picture_is_drawn_stops_the_run_after_it(tmp_path):
    class Figure:
        def savefig(self, file, **_):
            try:
                signal.raise_signal(signal.SIGTERM)
            except KeyboardInterrupt:  # as matplotlib's compiled parts do
                raise ValueError from None
            file.write(b"PNG")

    with pytest.raises(KeyboardInterrupt), stopped_by_signals():
        plots.save_figure(Figure(), tmp_path / "a.png")
    assert (tmp_path / "a.png").read_bytes() == b"PNG"
