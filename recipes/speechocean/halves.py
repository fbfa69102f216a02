"""Networks that never heard half of the speakers of the training, to whose scores the map of pronunciation is fitted.

A network is too sure of the speakers whom it heard.  With two networks, each trained without every second one of them,
the map learns from all, and not only from those of the development set.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from readers.corpora.directory import SPEAKERS, read_speakers
from readers.htk.scp import ScpEntry, read_scp, write_scp
from recipes.own.networks import CrossEntropy
from recipes.own.sizes import MINIBATCH
from recipes.packing import PackOptions, PartOptions
from recipes.stages import Stage, call

if TYPE_CHECKING:
    from recipes.own.run import Recipe

FOLDER = "halves"


class Half(CrossEntropy):
    """The first network once more, for all speakers of the training but some.

    unheard: names of these in the corpus; prefix: what the recipe puts before them.
    """

    def __init__(self, recipe: "Recipe", number: int, unheard: Sequence[str], prefix: str = ""):
        super().__init__(recipe, first=True, folder=f"{FOLDER}/{number}")
        self.unheard = unheard
        self.prefix = prefix

    @property
    def bundle(self) -> Path:
        """With the network, for alignment."""
        return self.home / "half.argo"

    def heard(self, entries: Iterable[ScpEntry]) -> list[ScpEntry]:
        """Return the utterances of the training that it hears."""
        speaker_of = read_speakers(self.recipe.out / "corpus" / SPEAKERS)
        unheard = {f"{self.prefix}{name}" for name in self.unheard}
        return [entry for entry in entries if speaker_of[Path(entry.key).name] not in unheard]

    def train(self, *settings: str) -> int:
        out = self.recipe.out
        entries = read_scp(out / "lists" / "train.scp")
        heard = self.heard(entries)
        script = out / "lists" / f"train.half{self.home.name}.scp"  # not in the directory where the training continues
        write_scp(script, heard)
        frames = len(heard) * self.recipe.facts.frames // len(entries)
        return super().train(f"TrainList={script}", f"EpochFrames={max(frames // MINIBATCH, 1) * MINIBATCH}", *settings)

    def pack(self) -> int:
        """Make the bundle."""
        recipe = self.recipe
        parts = PartOptions(
            model=self.model, graph=recipe.graph_folder("trained") / "graph.dg", lm=recipe.lm_file("trained"),
            features=recipe.out / "config" / "plain.hcopy", dict=recipe.dictionary, window=self.window,
            rate=recipe.facts.rate,
        )  # fmt: skip
        return call("pack", PackOptions(parts=parts, output=self.bundle))


@dataclass(frozen=True)
class Halves:
    """Both networks."""

    networks: tuple[Half, Half]

    @classmethod
    def of(cls, recipe: "Recipe", speakers: Sequence[str], prefix: str = "") -> "Halves | None":
        """Return the networks for some speakers of the training, None for fewer than two; prefix: as for `Half`."""
        if len(speakers) < 2:
            return None
        return cls((Half(recipe, 0, speakers[::2], prefix), Half(recipe, 1, speakers[1::2], prefix)))

    def stage(self) -> Stage:
        """Return the stage that trains them."""
        first, second = self.networks
        return Stage(
            FOLDER, "two networks, each of which never heard half of the speakers", self.train,
            ("lists", "features", "tie", "lm", "graph"),
            first.settings() | {"unheard": [" ".join(first.unheard), " ".join(second.unheard)]},
            first.recipe.out / FOLDER,
        )  # fmt: skip

    def train(self) -> int:
        lost = 0
        entries = read_scp(self.networks[0].recipe.out / "lists" / "train.scp")
        if not all(network.heard(entries) for network in self.networks):
            print("all utterances of the training are of one half of the speakers: no networks")
            return 0
        for network in self.networks:
            lost |= network.train() | network.pack()
        return lost
