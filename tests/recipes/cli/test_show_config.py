"""`argonaut recipe --show-config`, and what an installed package contains."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import recipes
from decoder.storage.installed import PACKAGED
from readers.config.hcopy import read_hcopy_config
from recipes.cli.main import main
from recipes.cli.recipe import RECIPES

PACKAGE = Path(recipes.__file__).parent
PACKAGES = recipes.PACKAGES


def shown(name: str, capsys) -> tuple[list[Path], str]:
    with pytest.raises(SystemExit) as ended:
        main(["recipe", "--show-config", name])
    assert ended.value.code == 0
    out, err = capsys.readouterr()
    return [Path(line) for line in out.splitlines()], err


@pytest.mark.parametrize("name", RECIPES)
def test_every_configuration_is_shown(name, capsys):
    files, remark = shown(name, capsys)
    assert files == sorted(PACKAGE.joinpath(name).glob("config/*"))
    assert remark == ("" if files else f"recipe {name} has no configuration files\n")


def test_the_paths_can_be_used(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    files, _ = shown("timit", capsys)
    hcopy, training = files
    assert read_hcopy_config(hcopy)["TARGETKIND"] == "FBANK_Z_D_A"
    assert (hcopy.name, training.name) == ("fbank24_zda.hcopy", "timit.cntk")


def test_an_unknown_recipe_is_refused(capsys):
    assert main(["recipe", "--show-config", "timitt"]) == 2
    assert "argument --show-config: 'timitt' is unknown; did you mean timit" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["stress", "--size", "5k", "--out", "exp"],
         "argonaut recipe: argument RECIPE: 'stress' is not installed any more; in a checkout of the sources run "
         "python -m benchmarks.stress; argonaut recipe --help shows the options"),
        (["--show-config", "variants"],
         "argonaut recipe: argument --show-config: 'variants' is not installed any more; in a checkout of the sources "
         "run python -m benchmarks.variants; argonaut recipe --help shows the options"),
        (["an4", "--out", "exp", "--variants", "all"],
         "argonaut recipe an4: argument --variants: is not installed any more; in a checkout of the sources run "
         "python -m benchmarks.variants an4 --only all; argonaut recipe an4 --help shows the options"),
    ],
)  # fmt: skip
def test_experiments_say_where_they_went(arguments, message, capsys):
    assert main(["recipe", *arguments]) == 2
    assert capsys.readouterr().err == f"error: {message}\n"


@pytest.fixture(scope="module")
def installed(tmp_path_factory) -> set[str]:
    """The files of the packages that a wheel contains, built from links to the sources."""
    pytest.importorskip("setuptools")
    root, tree = PACKAGE.parent, tmp_path_factory.mktemp("sources")
    for name in (*PACKAGES, "tests", "benchmarks", "docs", "README.md", "LICENSE", "NOTICE"):
        (tree / name).symlink_to(root / name)
    (tree / "decoder").unlink()  # a copy, to which an installed bundle is added
    shutil.copytree(root / "decoder", tree / "decoder", ignore=shutil.ignore_patterns("__pycache__"))
    models = tree / PACKAGED.relative_to(root)
    models.mkdir(exist_ok=True)
    (models / "toy.argo").write_bytes(b"a bundle")
    # Setuptools before 77 know no licence expressions.
    lines = (root / "pyproject.toml").read_text().splitlines()
    (tree / "pyproject.toml").write_text("\n".join(line for line in lines if not line.startswith("license")))
    build = [sys.executable, "-c", "import setuptools; setuptools.setup()", "build", "--build-lib", "wheel"]
    subprocess.run(build, cwd=tree, check=True, capture_output=True, text=True)
    return {path.relative_to(tree / "wheel").as_posix() for path in tree.glob("wheel/**/*") if path.is_file()}


@pytest.mark.slow
def test_everything_that_runs_is_installed(installed, capsys):
    root = PACKAGE.parent
    modules = {path for name in PACKAGES for path in root.joinpath(name).rglob("*.py")}
    shown_files = {path for name in RECIPES for path in shown(name, capsys)[0]}
    data = {path for name in PACKAGES for path in root.joinpath(name).rglob("data/**/*") if path.is_file()}
    networks = set(root.joinpath("acoustic").rglob("*.ndl"))
    assert min(map(len, (shown_files, data, networks))) > 0
    needed = {path.relative_to(root).as_posix() for path in modules | shown_files | data | networks}
    needed.add((PACKAGED / "toy.argo").relative_to(root).as_posix())
    assert sorted(needed - installed) == []


@pytest.mark.slow
def test_nothing_else_is_installed(installed):
    assert {path.split("/")[0] for path in installed} == set(PACKAGES)
    others = {path for path in installed if not path.endswith((".py", ".pyi", ".md", "/py.typed"))}
    assert not [path for path in others if not {"config", "data", "models", "ndl", "page"} & set(path.split("/"))]
