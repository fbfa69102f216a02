"""Systems of recipe an4: the tied triphones of recipe lvcsr, trained further with sMBR or MMI on copies of the data.

The network has learnt the training set itself: it makes no errors there from which a sequence criterion could learn.
"""

from collections.abc import Sequence

from decoder.sequence_training import lattices
from features import augmentation
from readers.common.files import write_lines
from recipes.an4.comparison import Comparison
from recipes.an4.recipe import CONFIG
from recipes.job import RecipeOptions
from recipes.lvcsr.run import Tied
from recipes.stage_settings import cntk_settings, file_settings
from recipes.stages import Stage, call
from recipes.steps import estimate, extract

START = "natural"  # the system of recipe lvcsr whose network they begin with
SPEEDS = "0.9,1.1"
SYSTEMS = {
    "further": "cross entropy on copies at other speeds",
    "smbr": "sMBR on the same copies, as many epochs",
    "mmi": "MMI on the same copies, as many epochs",
}


def compared(options: RecipeOptions, overrides: Sequence[str], name: str) -> Comparison:
    """Return the stages of a system, and of those that it is compared with."""
    start = Tied(options, overrides, START)
    systems = [Further(options, overrides, each) for each in ("further", name)]
    stages = [*start.shared_stages(), *start.tying_stages(), *start.system_stages(), *systems[0].data_stages()]
    stages += [stage for system in systems for stage in system.system_stages()]
    return Comparison(stages, [(start, "tied triphones"), *((each, SYSTEMS[each.name]) for each in systems)])


class Further(Tied):
    """The network of recipe lvcsr, trained further.  name: one of SYSTEMS."""

    def __init__(self, options: RecipeOptions, overrides: Sequence[str], name: str):
        super().__init__(options, overrides, name)
        self.start = Tied(options, overrides, START)
        self.copies = self.out / "lvcsr" / "copies"
        self.lattices = self.out / "lvcsr" / "lattices"

    def data_stages(self) -> list[Stage]:
        return [
            Stage("copies", "copies of the training set at other speeds", self.make_copies, ("lists", "tie"),
                  {"speeds": SPEEDS}),
            Stage("lattices", "lattices of the copies, with a unigram", self.make_lattices,
                  ("lists", "tie", "graph-tied", "copies", f"train-{START}")),
        ]  # fmt: skip

    def system_stages(self) -> list[Stage]:
        graphs = ("lists", "features", "lm", "graph-tied")
        data = ("tie", "copies", f"train-{START}", *(() if self.name == "further" else ("lattices",)))
        return [
            Stage(f"train-{self.name}", SYSTEMS[self.name], self.train_tied, data,
                  cntk_settings(self.system_arguments()) | file_settings(CONFIG / "sequence.mel"), self.home / "model"),
            *self.evaluation_stages(self.name, graphs),
        ]  # fmt: skip

    def make_copies(self) -> int:
        from readers.htk.mlf import read_mlf, write_mlf

        train = self.sets["train"]
        words = read_mlf(self.out / "labels" / "train.words.mlf")
        source = self.copies / "source"
        config = self.out / "config" / "plain.hcopy"
        write_lines(source / "audio.scp", (f"{utterance.name}={utterance.audio}" for utterance in train))
        write_mlf(source / "words.mlf", ((f"*/{utterance.name}.lab", words[utterance.name]) for utterance in train))
        options = augmentation.AugmentOptions(
            source=source, speeds=tuple(map(float, SPEEDS.split(","))), copies_only=True,
            states=self.hmms / "states.mlf", config=config, out=self.copies,
        )  # fmt: skip
        return call("augment", options, workers=self.workers) | extract(
            config, self.copies / "hcopy.list", self.workers, scp=self.copies / "features.scp",
            report=self.out / "reports" / "features.copies",
        )  # fmt: skip

    def make_lattices(self) -> int:
        options = lattices.DenominatorOptions(
            features=self.copies / "features.scp", model=self.start.model,
            graph=self.graph_folder("unigram") / "graph.dg", lm=self.lm_file("unigram"),
            words=self.copies / "words.mlf", alignment=self.copies / "states.mlf", acweight=0.07, beam=15.0,
            lattice_beam=10.0, out=self.lattices,
        )  # fmt: skip
        lost = estimate(self.out / "lm" / "train.txt", self.lm_file("unigram"), self.dictionary, order=1)
        lost |= self.make_graph("unigram")
        return lost | call("denominator", options, workers=self.workers)

    def train_tied(self) -> int:
        if self.name == "further":
            self.begin_with(self.start.model)
        return super().train_tied()

    def system_arguments(self, *settings: str) -> list[str]:
        return [
            f"configFile={CONFIG / 'sequence.cntk'}", f"Criterion={self.name}",
            f"command={'Further' if self.name == 'further' else 'Edit:Sequence'}",
            f"ExpDir={self.out}", f"WorkDir={self.home}", f"ScriptDir={CONFIG}", f"Start={self.start.model}",
            f"LatticeDir={self.lattices}", f"Copies={self.copies}", f"randomSeed={self.seed}", *settings,
            *self.overrides,
        ]  # fmt: skip
