"""Systems of recipe an4: the tied triphones of recipe lvcsr, trained further with sMBR or MMI on copies of the data.

The network has learnt the training set itself: it makes no errors there from which a sequence criterion could learn.
"""

import argparse

from readers.common.files import atomic_write
from readers.errors import ConfigError
from recipes.an4 import ivectors
from recipes.an4.lattice_free import run as lattice_free
from recipes.an4.recipe import CONFIG, LMS
from recipes.lvcsr.run import Tied
from recipes.stage_settings import cntk_settings, file_settings
from recipes.stages import Stage, command, run_stages

START = "natural"  # the system of recipe lvcsr whose network they begin with
SPEEDS = "0.9,1.1"
TYING = {"threshold": 400.0, "min_frames": 100.0}  # as in recipe lvcsr
SYSTEMS = {
    "further": "cross entropy on copies at other speeds",
    "smbr": "sMBR on the same copies, as many epochs",
    "mmi": "MMI on the same copies, as many epochs",
}


def run(arguments: argparse.Namespace) -> int:
    if arguments.network != "dnn":
        raise ConfigError(f"command line: --system {arguments.system} with --network; expected it alone")
    if arguments.system in lattice_free.NAMES:
        return lattice_free.run(arguments)
    given = argparse.Namespace(**vars(arguments) | TYING)
    if arguments.system == "ivector":
        return ivectors.run(given)
    start = Tied(given, START)
    systems = [Further(given, name) for name in ("further", arguments.system)]
    stages = [stage for stage in start.stages() if stage.name in ("lists", "features", "lm")]
    stages += [*start.tying_stages(), *start.system_stages(), *systems[0].data_stages()]
    stages += [stage for system in systems for stage in system.system_stages()]

    def closing() -> None:
        for system, what in ((start, "tied triphones"), *((one, SYSTEMS[one.name]) for one in systems)):
            rates = "  ".join(f"{system.total(name).word_error_rate:.1f}%" for name in LMS)
            print(f"WER {rates}  ({', '.join(LMS.values())}): {what}")

    return run_stages(stages, start.out, arguments.first, arguments.last, closing)


class Further(Tied):
    """The network of recipe lvcsr, trained further.  name: one of SYSTEMS."""

    def __init__(self, arguments: argparse.Namespace, name: str):
        super().__init__(arguments, name)
        self.start = Tied(arguments, START)
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
        train, tune, decode = (f"{stage}-{self.name}" for stage in ("train", "tune", "decode"))
        graphs = ("lists", "features", "lm", "graph-tied")
        data = ("tie", "copies", f"train-{START}", *(() if self.name == "further" else ("lattices",)))
        return [
            Stage(train, SYSTEMS[self.name], self.train_tied, data,
                  cntk_settings(self.cntk_arguments()) | file_settings(CONFIG / "sequence.mel"), self.home / "model"),
            Stage(tune, "search options, on the development set", self.tune, (*graphs, train)),
            Stage(decode, "words and lattices of the test set", self.decode, (*graphs, train, tune)),
            Stage(f"score-{self.name}", "word error rates", self.score, ("lists", decode), closes=True),
        ]  # fmt: skip

    def make_copies(self) -> int:
        from readers.htk.mlf import read_mlf, write_mlf

        train, words = self.sets["train"], read_mlf(self.out / "labels" / "train.words.mlf")
        source, config = self.copies / "source", self.out / "config" / "plain.hcopy"
        with atomic_write(source / "audio.scp", "w") as file:
            file.writelines(f"{utterance.name}={utterance.audio}\n" for utterance in train)
        write_mlf(source / "words.mlf", ((f"*/{utterance.name}.lab", words[utterance.name]) for utterance in train))
        return command(
            "augment", source, "--speed", SPEEDS, "--copies-only", "--states", self.hmms / "states.mlf",
            "-C", config, "--out", self.copies, "-j", self.workers,
        ) | command(
            "hcopy", "-C", config, "-S", self.copies / "hcopy.list", "--scp", self.copies / "features.scp",
            "--report", self.out / "reports" / "features.copies", "-j", self.workers,
        )  # fmt: skip

    def make_lattices(self) -> int:
        lm, graph = self.lm_file("unigram"), self.graph_folder("unigram")
        return command(
            "lm", "estimate", "--text", self.out / "lm" / "train.txt", "--order", 1, "--method", "kn",
            "--dict", self.dictionary, "-o", lm,
        ) | self.make_graph("unigram") | command(
            "denominator", "--features", self.copies / "features.scp", "--model", self.start.model,
            "--graph", graph / "graph.dg", "--lm", lm, "--words", self.copies / "words.mlf",
            "--alignment", self.copies / "states.mlf", "--acweight", 0.07, "--beam", 15, "--lattice-beam", 10,
            "--out", self.lattices, "-j", self.workers,
        )  # fmt: skip

    def train_tied(self) -> int:
        if self.name == "further":
            self.begin_with(self.start.model)
        return super().train_tied()

    def cntk_arguments(self, *settings: str) -> list[str]:
        return [
            f"configFile={CONFIG / 'sequence.cntk'}", f"Criterion={self.name}",
            f"command={'Further' if self.name == 'further' else 'Edit:Sequence'}",
            f"ExpDir={self.out}", f"WorkDir={self.home}", f"ScriptDir={CONFIG}", f"Start={self.start.model}",
            f"LatticeDir={self.lattices}", f"Copies={self.copies}", f"randomSeed={self.seed}", *settings,
            *self.overrides,
        ]  # fmt: skip
