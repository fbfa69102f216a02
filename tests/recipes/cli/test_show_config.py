"""`argonaut recipe --show-config`, and what an installed package contains."""

import tomllib
from pathlib import Path

import pytest

import recipes
from readers.config.hcopy import read_hcopy_config
from recipes.cli.main import main
from recipes.cli.recipe import RECIPES

PACKAGE = Path(recipes.__file__).parent


def shown(name: str, capsys) -> tuple[list[Path], str]:
    with pytest.raises(SystemExit) as ended:
        main(["recipe", "--show-config", name])
    assert ended.value.code == 0
    out, err = capsys.readouterr()
    return [Path(line) for line in out.splitlines()], err


@pytest.mark.parametrize("name", [*RECIPES, "variants"])
def test_every_configuration_is_shown(name, capsys):
    files, remark = shown(name, capsys)
    assert files == sorted(PACKAGE.joinpath(name).glob("config/*"))
    assert remark == ("" if files else f"recipe {name} has no configuration files\n")


def test_the_paths_can_be_used(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    files, _ = shown("timit", capsys)
    hcopy, training, _ = files
    assert read_hcopy_config(hcopy)["TARGETKIND"] == "FBANK_Z_D_A"
    assert (hcopy.name, training.name) == ("fbank24_zda.hcopy", "timit.cntk")


def test_an_unknown_recipe_is_refused(capsys):
    assert main(["recipe", "--show-config", "timitt"]) == 2
    assert "argument --show-config: 'timitt' is unknown; did you mean timit" in capsys.readouterr().err


def test_configurations_and_data_are_installed():
    packaged = tomllib.loads((PACKAGE.parent / "pyproject.toml").read_text())["tool"]["setuptools"]["package-data"]
    found = {path for pattern in packaged["recipes"] for path in PACKAGE.glob(pattern)}
    used = {path for part in ("config", "data") for path in PACKAGE.rglob(f"{part}/**/*") if path.is_file()}
    assert len(used) > 60
    assert used <= found
