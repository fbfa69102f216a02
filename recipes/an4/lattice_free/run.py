"""Systems `lfmmi` and `lfmmi-flat` of recipe an4: TDNN-F networks on biphones, trained with lattice-free MMI.

`lfmmi` takes the alignments of the corpus.  `lfmmi-flat` begins with transcripts alone: a network on monophones aligns
the training set, and biphones are made from these alignments.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from decoder import tying
from decoder.sequence_training import chain
from decoder.sequence_training.chain.options import ChainDictionary, ChainStates, PhoneLmOptions
from readers.htk.mlf import read_mlf, write_mlf
from recipes.an4.comparison import count_lines
from recipes.an4.lattice_free.biphones import CONFIG, WINDOW, make_biphones, make_graph
from recipes.an4.recipe import LMS, Recipe
from recipes.evaluation import Evaluation, language_models
from recipes.job import RecipeOptions, RecipeResult
from recipes.stage_settings import cntk_settings
from recipes.stages import Stage, call
from recipes.steps import align, cntk

ORDER = 2  # of the phone language model of the denominator
TYING = {"threshold": 200.0, "min_frames": 100.0}  # of five copies of the training set
NAMES = ("lfmmi", "lfmmi-flat")


@dataclass(frozen=True)
class Labels:
    """A state alignment: file, list of its states, and the stage that makes it."""

    alignment: Path
    states: Path
    stage: str


class LatticeFree(Recipe):
    """A network trained with lattice-free MMI.  name: that of its directory and at the end of its stages' names."""

    configs: tuple[Path, ...]
    lms: tuple[str, ...]  # of the graphs

    def __init__(self, options: RecipeOptions, overrides: Sequence[str], name: str):
        super().__init__(options, overrides)
        self.name = name
        self.home = self.out / name
        self.chain = self.home / "chain"
        self.senones = self.chain / "senones.list"

    def system_stages(self) -> list[Stage]:
        chain, graph, train = (f"{stage}-{self.name}" for stage in ("chain", "graph", "train"))
        return [
            self.chain_stage(chain),
            Stage(graph, "decoding graphs", self.graph, ("lists", "lm", chain)),
            Stage(train, "the TDNN-F", self.train_network, ("lists", "features", chain),
                  cntk_settings(self.system_arguments()), self.home / "model"),
        ]  # fmt: skip

    def chain_stage(self, name: str) -> Stage:
        raise NotImplementedError

    def graph(self) -> int:
        lost = 0
        for name in self.lms:
            lost |= make_graph(self.chain, self.dictionary, self.lm_file(name), self.graph_folder(name))
        return lost

    def train_network(self) -> int:
        return cntk(self.system_arguments(f"NumSenones={count_lines(self.senones)}"))

    def system_arguments(self, *settings: str) -> list[str]:
        return [
            f"configFile={'+'.join(map(str, self.configs))}", f"ExpDir={self.out}", f"WorkDir={self.home}",
            f"ScriptDir={CONFIG}", f"randomSeed={self.seed}", *settings, *self.overrides,
        ]  # fmt: skip

    @property
    def evaluation(self) -> Evaluation:
        from recipes.an4.grid import LATTICE_FREE_GRID

        models = language_models(LMS, self.lm_file, self.graph_folder)
        return Evaluation(self.out, self.home, self.model, WINDOW, models, LATTICE_FREE_GRID, self.workers, "*-%%%%*-?")

    @property
    def model(self) -> Path:
        return self.home / "model" / "tdnnf"

    def graph_folder(self, name: str) -> Path:
        return self.home / "graph" / name


class Biphones(LatticeFree):
    """Biphones whose outputs are tied, from an alignment: that of the corpus, unless `source` is set."""

    configs = (CONFIG / "lfmmi.cntk",)
    lms = ("tune-trained", *LMS)

    def __init__(self, options: RecipeOptions, overrides: Sequence[str], name: str):
        super().__init__(options, overrides, name)
        labels = self.out / "labels"
        self.source = Labels(labels / "states.mlf", labels / "states.list", "lists")

    def system_stages(self) -> list[Stage]:
        graphs = ("lists", "features", "lm", f"graph-{self.name}")
        return [*super().system_stages(), *self.evaluation_stages(self.name, graphs)]  # fmt: skip

    def chain_stage(self, name: str) -> Stage:
        return Stage(
            name, "tied biphones; numerator and denominator graphs", self.make_chain,
            ("lists", "features", self.source.stage), {**TYING, "order": ORDER},
        )  # fmt: skip

    def make_chain(self) -> int:
        alignment = read_mlf(self.source.alignment)
        train = self.home / "train.mlf"
        names = [utterance.name for utterance in self.sets["train"] if utterance.name in alignment]
        write_mlf(train, ((f"*/{name}.lab", alignment[name]) for name in names))
        return make_biphones(
            train, ChainStates(state_list=self.source.states), self.out / "lists" / "train.scp", self.home,
            trees=tying.TreeOptions(threshold=TYING["threshold"], min_frames=TYING["min_frames"]), order=ORDER,
        )  # fmt: skip


class Monophones(LatticeFree):
    """Monophones, from transcripts."""

    configs = (CONFIG / "lfmmi.cntk", CONFIG / "flat.cntk")
    lms = ("trained",)

    def chain_stage(self, name: str) -> Stage:
        return Stage(
            name, "numerator graphs from transcripts, and the denominator", self.make_chain, ("lists", "features"),
            {"order": ORDER},
        )  # fmt: skip

    def make_chain(self) -> int:
        options = chain.ChainOptions(
            words=self.out / "labels" / "train.words.mlf", dictionary=ChainDictionary(dict=self.dictionary),
            features=self.out / "lists" / "train.scp", phone_lm=PhoneLmOptions(order=ORDER), out=self.chain,
        )  # fmt: skip
        return call("chain", options)

    def system_stages(self) -> list[Stage]:
        needs = ("lists", "features", f"graph-{self.name}", f"train-{self.name}")
        return [*super().system_stages(), Stage(f"align-{self.name}", "the training set aligned", self.align, needs)]

    @property
    def aligned(self) -> Path:
        return self.home / "align" / "states.mlf"

    def align(self) -> int:
        """Align the original utterances; the copies have the same labels."""
        from readers.htk.scp import read_scp, write_scp

        entries = [e for e in read_scp(self.out / "lists" / "train.scp") if e.key.startswith("plain/")]
        listed = self.aligned.with_name("plain.scp")
        entries = [e._replace(logical=e.logical.removeprefix("plain/")) for e in entries]
        write_scp(listed, entries)
        graph = self.graph_folder("trained")
        found_file = self.aligned.with_name("found.mlf")
        lost = align(
            graph, self.model, WINDOW, found_file, infiles=listed, words=self.out / "labels" / "train.words.mlf",
            dictionary=self.dictionary, acweight=1.0,
        )  # fmt: skip
        alignment = read_mlf(found_file)
        write_mlf(self.aligned, ((f"*/{e.key}.lab", labels) for e in entries if (labels := alignment.get(e.key))))
        return lost


class Systems:
    """The stages of a system, which may begin with another that aligns.  name: one of NAMES."""

    def __init__(self, options: RecipeOptions, overrides: Sequence[str], name: str):
        self.system = Biphones(options, overrides, name)
        self.before = []
        self.out = self.system.out
        if name == "lfmmi-flat":
            flat = Monophones(options, overrides, "flat")
            self.system.source = Labels(flat.aligned, flat.senones, "align-flat")
            self.before = flat.system_stages()

    def stages(self) -> list[Stage]:
        return [*self.system.shared_stages(), *self.before, *self.system.system_stages()]

    def result(self) -> RecipeResult:
        return self.system.evaluation.result()
