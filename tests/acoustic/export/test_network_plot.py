"""Drawings of networks: their size, and what the legend explains."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from acoustic.descriptions.builders.simple import SimpleNetworkOptions, build_simple_network
from acoustic.export import network_plot
from acoustic.export.dot import dot_text


@pytest.fixture
def page_of(tmp_path, monkeypatch):
    """page_of(num_layers): width and height in points of the PDF of a network, and the texts of its legend."""
    texts: list[str] = []
    draw_legend = network_plot._draw_legend

    def legend(axes, roles, page):
        draw_legend(axes, roles, page)
        texts.extend(text.get_text() for text in axes.get_legend().get_texts())

    monkeypatch.setattr(network_plot, "_draw_legend", legend)

    def page(num_layers: int) -> tuple[float, float, list[str]]:
        options = SimpleNetworkOptions(layer_sizes=(4, *[3] * num_layers, 2))
        network_plot.draw_network(build_simple_network(options), tmp_path / "net.pdf")
        box = re.search(rb"/MediaBox \[ ?0 0 ([\d.]+) ([\d.]+) ?\]", (tmp_path / "net.pdf").read_bytes())
        return float(box[1]), float(box[2]), texts

    return page


@pytest.mark.parametrize("num_layers", [1, 40])
def test_a_drawing_fits_on_a_page(page_of, num_layers):
    width, height, texts = page_of(num_layers)
    short, long = (72 * side for side in network_plot.PAGE)
    assert min(width, height) <= short + 1
    assert max(width, height) <= long + 1
    assert texts[-1] == "rows×*: one column per frame"


def test_graphviz_has_the_page_and_the_explanation():
    text = dot_text(build_simple_network(SimpleNetworkOptions(layer_sizes=(4, 3, 2))))
    assert 'size="11.7,16.5"' in text
    assert 'label="rows×*: one column per frame"' in text


@pytest.mark.slow
@pytest.mark.parametrize(
    "use",
    [
        "from acoustic.training.reporting.plots import new_figure, save_figure; save_figure(new_figure(1, 1), 'a.png')",
        "from acoustic.export.network_plot import picture_format; picture_format('a.png')",
    ],
)
def test_matplotlib_is_silent_where_no_home_directory_can_be_written(use, tmp_path):
    (tmp_path / "file").touch()
    environment = {**os.environ, "HOME": f"{tmp_path}/file", "PYTHONPATH": str(Path(__file__).parents[3])}
    for name in ("MPLCONFIGDIR", "XDG_CONFIG_HOME", "XDG_CACHE_HOME"):
        environment.pop(name, None)
    done = subprocess.run([sys.executable, "-c", use], env=environment, cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
