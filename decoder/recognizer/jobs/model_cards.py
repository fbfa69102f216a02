"""Lists the bundles that are installed, with what each says about itself."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from decoder.recognizer.bundle import read_description
from decoder.recognizer.description import BundleDescription
from decoder.storage.installed import installed_models
from readers.common.faults import one_line
from readers.common.report import Figures
from readers.errors import ArgonautError


@dataclass(frozen=True)
class InstalledModel:
    """A bundle that is installed.

    Attributes
    ----------
    name : str
        By which it is found wherever a bundle is expected.
    path : Path
    size : int
        Bytes of the members; of a compact bundle, of its file.
    description : BundleDescription or None
        None for a bundle that cannot be opened.
    fault : str
        Why it cannot; otherwise "".
    """

    name: str
    path: Path
    size: int = 0
    description: BundleDescription | None = None
    fault: str = ""

    def figures(self) -> Figures:
        """Return the card: names and values for people."""
        if self.description is None:
            return [("fault", self.fault)]
        return [*self.description.figures(), ("size", f"{self.size / 1e6:.1f} MB"), ("file", self.path)]

    def as_json(self) -> dict[str, Any]:
        """Return the card as an object of JSON."""
        content: dict[str, Any] = {"name": self.name, "file": str(self.path), "size": self.size}
        if self.description is None:
            return content | {"fault": self.fault}
        fields = self.description.as_json()
        names = ("language", "licence", "sample_rate", "lowest_rate", "vocabulary", "errors")
        return content | {name: fields[name] for name in names} | fields["card"]


def models() -> list[InstalledModel]:
    """Return the bundles that are installed, in alphabetical order.

    Returns
    -------
    list of InstalledModel
        A bundle that cannot be opened has its fault.

    Examples
    --------
    ``[model.name for model in models()]``
    """
    return [_opened(name, path) for name, path in installed_models().items()]


def _opened(name: str, path: Path) -> InstalledModel:
    try:
        description, size = read_description(path)
    except (ArgonautError, OSError) as fault:
        return InstalledModel(name, path, fault=one_line(fault))
    return InstalledModel(name, path, size, description)
