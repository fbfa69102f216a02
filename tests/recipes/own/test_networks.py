"""Which criterion the final network has, and how large it is."""

from pathlib import Path

import pytest

from acoustic.descriptions.ndl.builder import build_ndl_network, ndl_options
from decoder.graph.options import TUNED_OPTIONS
from readers.config.config import load_config
from recipes.own.data import FRAMES_PER_SECOND, Facts
from recipes.own.networks import CrossEntropy, LatticeFree
from recipes.own.options import OwnDictionary, OwnOptions
from recipes.own.run import Recipe
from recipes.own.sizes import LATTICE_FREE_GRID, TdnnfSizes

HOUR = 3600 * FRAMES_PER_SECOND


def recipe(place: Path, hours: float, **options) -> Recipe:
    """A recipe whose training set has so many hours."""
    (place / "words.dict").touch()
    Facts(16000, round(hours * HOUR)).write(place / "data.json")
    dictionary = OwnDictionary(dict=place / "words.dict")
    return Recipe(OwnOptions(data=place, dictionary=dictionary, out=place, **options))


def test_lattice_free_mmi_needs_an_hour_of_training_speech(tmp_path):
    assert isinstance(recipe(tmp_path, 0.99).final, CrossEntropy)
    assert isinstance(recipe(tmp_path, 1.0).final, LatticeFree)
    assert isinstance(recipe(tmp_path, 0.1, final="lfmmi").final, LatticeFree)
    assert isinstance(recipe(tmp_path, 10, final="ce").final, CrossEntropy)


def test_a_training_depends_on_the_settings_of_the_network_that_it_is(tmp_path):
    def settings(hours, **options):
        stage = next(stage for stage in recipe(tmp_path, hours, **options).stages() if stage.name == "train")
        return stage.with_inputs().settings

    by_hours = {hours: settings(hours) for hours in (0.5, 1)}
    for hours, name, commands in ((0.5, "ce", ["Own_Train"]), (1, "lfmmi", ["LFMMI_Train", "LFMMI_Combine"])):
        actions = [key for key in by_hours[hours] if key.endswith(".action")]
        assert actions == [f"{command}.action" for command in commands]
        assert settings(hours, final=name) == settings(2, final=name) == by_hours[hours]
    ctc = settings(1, final="ctc")
    assert [key for key in ctc if key.endswith(".action")] == ["CTC_Train.action", "CTC_Combine.action"]
    assert settings(1, overrides=("Units=64",)) != by_hours[1]
    assert settings(0.5, overrides=("Units=64",)) == by_hours[0.5]


def test_the_features_are_listed_again_if_another_part_of_the_development_set_is_for_tuning(tmp_path, monkeypatch):
    """A directory of a version without this part repeats the stage, which writes lists/tune.scp and valid.scp."""

    def settings() -> dict[str, object]:
        return next(stage.settings for stage in recipe(tmp_path, 1).stages() if stage.name == "features")

    assert settings()["tuning_minutes"] == 20
    monkeypatch.setattr("recipes.own.run.TUNING_MINUTES", 30)
    assert settings()["tuning_minutes"] == 30


def test_a_graph_carries_the_search_options_of_the_network_by_lattice_free_mmi():
    assert {*LATTICE_FREE_GRID.values, *LATTICE_FREE_GRID.fixed, "beam"} <= set(TUNED_OPTIONS)
    assert LATTICE_FREE_GRID.fixed["slack_decay"] == 0
    assert LATTICE_FREE_GRID.beams == (7.5, 8.0, 8.5, 9.0, 10.0)


def test_sizes_of_the_network_by_lattice_free_mmi():
    assert TdnnfSizes(702_709).arguments() == [
        *("Units=448", "Bottleneck=96", "FinalEpochs=50", "FinalDropout=0.3*37:0.15*8:0*5", "EpochColumns=234236"),
    ]


@pytest.mark.parametrize("layers", [6, 9])
def test_the_network_has_as_many_layers_as_its_setting(tmp_path, layers):
    arguments = recipe(tmp_path, 1, final="lfmmi").final.arguments(f"Layers={layers}", "NumSenones=5", "Units=8")
    block = load_config(arguments).block("LFMMI_Train")
    network = build_ndl_network(ndl_options(block.block("NDLNetworkBuilder")))
    assert f"L{layers}.P" in network.nodes
    assert f"L{layers + 1}.P" not in network.nodes


@pytest.mark.parametrize("hours", [0.0, 0.02, 0.5, 5, 50, 1000])
def test_sizes_grow_with_the_data_and_epochs_fall(hours):
    small = TdnnfSizes(round(hours * HOUR))
    large = TdnnfSizes(round(2 * (hours + 0.01) * HOUR))
    assert 256 <= small.units <= large.units <= 1024
    assert 64 <= small.bottleneck <= large.bottleneck <= 192
    assert 80 >= small.epochs >= large.epochs >= 16
    assert small.threshold <= large.threshold
    schedule = small.arguments()[3].partition("=")[2]
    assert sum(int(part.partition("*")[2]) for part in schedule.split(":")) == small.epochs
