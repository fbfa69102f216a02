"""Options of a comparison of two alignments."""

from dataclasses import dataclass
from pathlib import Path

from decoder.scoring.job import ComparedFiles
from readers.config.options import option
from readers.tables.timit import read_phone_map


@dataclass(frozen=True, kw_only=True)
class BoundaryOptions(ComparedFiles):
    """Two alignments, and what counts in them."""

    tier: tuple[str, ...] = option(
        (),
        "boundaries: tiers to compare, separated by commas, such as phones,words (default: those of both files)",
        separator=",",
        metavar="NAMES",
    )
    map_hypothesis: Path | None = option(
        None, "boundaries: map of the hypothesis's phones to those of the reference, before {fold}", metavar="MAP"
    )
    strip_stress: bool = option(False, "boundaries: AH0, AH1 and AH2 are AH, before the maps")
    classes: Path | None = option(
        None,
        "boundaries: lines `label class` for figures by class, after the maps (default: classes of ARPAbet's phones)",
        metavar="MAP",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        is_beside_level = bool(self.tier) and self.has_level
        self.require("tier", not is_beside_level, "is given beside a level; expected only one of them")

    @property
    def has_level(self) -> bool:
        """Whether a level of an MLF is given."""
        return any((self.level, self.reference_level, self.hypothesis_level))

    @property
    def hypothesis_map(self) -> dict[str, str | None]:
        """What each phone of the hypothesis is called in the reference; reads `map_hypothesis`."""
        return read_phone_map(self.map_hypothesis, -1) if self.map_hypothesis else {}

    @property
    def label_classes(self) -> dict[str, str | None] | None:
        """Class of each label; reads `classes`."""
        return read_phone_map(self.classes, -1) if self.classes else None
