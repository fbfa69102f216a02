"""Files that are installed under a name: bundles that come with the package, and those that the user has added.

`en` is the file en.argo, or the directory en, in one of these directories, the first that has it:

1. those of the environment variable ARGONAUT_MODELS, separated as in PATH;
2. argonaut/models in the user's data directory: XDG_DATA_HOME, by default ~/.local/share, on Windows LOCALAPPDATA;
3. decoder/storage/models in the package.

A file or directory called `en` in the working directory comes before all of them.
"""

import os
from pathlib import Path

VARIABLE = "ARGONAUT_MODELS"
SUFFIX = ".argo"
PACKAGED = Path(__file__).parent / "models"


def model_directories() -> list[Path]:
    """Return the directories of installed bundles, the first to be searched first; they need not exist."""
    chosen = [Path(entry) for entry in os.environ.get(VARIABLE, "").split(os.pathsep) if entry]
    data = Path(os.environ.get("LOCALAPPDATA" if os.name == "nt" else "XDG_DATA_HOME", ""))
    if not data.is_absolute():
        data = Path.home() / ".local" / "share"
    return [*chosen, data / "argonaut" / "models", PACKAGED]


def installed_models() -> dict[str, Path]:
    """Return the path of each installed bundle, by name in alphabetical order.

    Returns
    -------
    dict of str to Path
        Directories that cannot be read are left out.
    """
    models: dict[str, Path] = {}
    for directory in model_directories():
        try:
            entries = sorted(directory.iterdir())
        except OSError:
            continue
        for entry in entries:
            if entry.suffix == SUFFIX or (entry / "bundle.json").is_file():
                models.setdefault(entry.name.removesuffix(SUFFIX), entry)
    return dict(sorted(models.items()))


def find_model(name: str | Path) -> Path:
    """Return the path of a bundle, given itself or the name of an installed one.

    Parameters
    ----------
    name : str or Path

    Returns
    -------
    Path
        `name` itself if it exists, or is no bare name, or if no bundle of that name is installed.
    """
    path = Path(name)
    return path if not _is_bare(path) or os.path.lexists(path) else installed_models().get(path.name, path)


def model_fault(name: str | Path) -> str:
    """Return what is wrong with a bare name that is no bundle: a file hides the installed one, or there is none.

    Parameters
    ----------
    name : str or Path
        As the user gave it.

    Returns
    -------
    str
        "" for a path, and for a file that hides no installed bundle.
    """
    path = Path(name)
    if not _is_bare(path):
        return ""
    models = installed_models()
    if not os.path.lexists(path):
        names = ", ".join(models) or "none is installed"
        return f"{path}: no such file; expected a bundle, or the name of an installed one: {names}"
    if path.name not in models:
        return ""
    return f"{path}: no bundle, and hides the installed one, {models[path.name]}; expected another working directory"


def _is_bare(path: Path) -> bool:
    """Return whether a path has neither a directory nor the suffix of bundles."""
    return path.name == str(path) and path.suffix != SUFFIX
