"""Cross-word triphones on AN4, with states tied by decision trees: compared with monophones, realigned and retrained.

worked example:
  argonaut recipe an4 --data ~/corpora/an4 --out exp/an4
  argonaut recipe lvcsr --data ~/corpora/an4 --out exp/an4
The first command trains on monophones; if its results are missing, the second command runs it.  The second command
ties the states of triphones, writes them as an HTK model set, builds graphs from it, trains the same network on the
tied states with momentum and with natural gradient, and decodes with the same language models.  Then it aligns the
training set with the first of these systems, and trains this for five more epochs on the old and on the new alignments.
It ends with the word error rates on the test set:
  WER 8.3%  5.0%  (flat LM, LM trained on the transcripts): monophones, 132 states
  WER 5.8%  3.6%  (flat LM, LM trained on the transcripts): tied triphones, 348 states
  WER 5.2%  3.1%  (flat LM, LM trained on the transcripts): the same with natural gradient, half the epochs
  WER 5.6%  3.6%  (flat LM, LM trained on the transcripts): trained further on the same alignments
  WER 6.0%  3.4%  (flat LM, LM trained on the transcripts): trained further on its own alignments
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from decoder import grammars, tying
from readers.common.files import write_content
from readers.config.options import option
from recipes import job
from recipes.an4.comparison import Comparison, count_lines
from recipes.an4.recipe import LMS, RATE, TRANSITION_POWER, WINDOW, Recipe
from recipes.stage_settings import cntk_settings, file_settings
from recipes.stages import Stage, account, call
from recipes.steps import align, cntk, extract, make_bundle

CONFIG = Path(__file__).parent / "config"
QUESTIONS = Path(__file__).parent / "data" / "questions.hed"
TREES = {"threshold": 400.0, "min_frames": 100.0}  # options of the decision trees
SYSTEMS = {
    "tied": "the network of 1680-768x4 on tied triphone states",
    "natural": "the same with natural gradient, half the epochs",
    "continued": "the same, trained further on the same alignments",
    "realigned": "the same, trained further on its own alignments",
}
# Configurations that replace settings of tied.cntk.
OVERRIDES = {"natural": "natural.cntk", "continued": "again.cntk", "realigned": "again.cntk"}


@dataclass(frozen=True, kw_only=True)
class LvcsrOptions(job.RecipeOptions):
    """Options of recipe lvcsr."""

    threshold: float = option(TREES["threshold"], "minimum gain of a split in ln likelihood", least=0)
    min_frames: float = option(TREES["min_frames"], "minimum frames of a state", least=0, metavar="N")
    overrides: tuple[str, ...] = job.overrides("of the trainings to replace, such as LVCSR_Train=[SGD=[maxEpochs=4]]")

    def overrides_without(self, command: str) -> list[str]:
        """Return the settings that are not those of a command of other networks."""
        return [text for text in self.overrides if text.partition("=")[0].strip().lower() != command.lower()]


def compared(options: LvcsrOptions) -> Comparison:
    """Return the stages of monophones and of all tied systems."""
    phones = Recipe(options, options.overrides_without("LVCSR_Train"))
    trees = {"threshold": options.threshold, "min_frames": options.min_frames}
    overrides = options.overrides_without("AN4_Train")
    tied, natural, continued, realigned = (Tied(options, overrides, name, trees) for name in SYSTEMS)
    stages = [*phones.stages(), *tied.tying_stages(), *tied.system_stages(), tied.packing, *natural.system_stages()]
    stages += [tied.alignment_stage(), *realigned.system_stages(), *continued.system_stages()]
    systems = [
        (phones, "monophones, {states} states"),
        (tied, "tied triphones, {states} states"),
        (natural, "the same with natural gradient, half the epochs"),
        (continued, "trained further on the same alignments"),
        (realigned, "trained further on its own alignments"),
    ]
    return Comparison(stages, systems)


class Tied(Recipe):
    """The AN4 recipe with tied states as outputs.  name: one of SYSTEMS; trees: options of the decision trees."""

    def __init__(
        self, options: job.RecipeOptions, overrides: Sequence[str], name: str, trees: dict[str, float] | None = None
    ):
        super().__init__(options, overrides)
        self.name = name
        self.tying = trees or TREES
        self.shared = self.out / "lvcsr" / "tied"  # all systems share the tied states
        self.home = self.out / "lvcsr" / name
        self.hmms = self.shared / "hmms"
        self.senones = self.shared / "hmms" / "senones.list"
        aligned = self.out / "lvcsr" / "align" / "states.mlf"
        self.labels = aligned if name == "realigned" else self.hmms / "states.mlf"

    def tying_stages(self) -> list[Stage]:
        return [
            Stage("tie", "cepstra of the training set; tied states by decision trees", self.tie, ("lists",),
                  self.tying | file_settings(QUESTIONS, CONFIG / "tying.hcopy")),
            Stage("graph-tied", "cross-word triphone graphs for the three LMs", self.graph, ("lists", "lm", "tie")),
        ]  # fmt: skip

    def system_stages(self) -> list[Stage]:
        before = {"continued": ("train-tied",), "realigned": ("train-tied", "align")}.get(self.name, ())
        graphs = ("lists", "features", "lm", "graph-tied")
        return [
            Stage(f"train-{self.name}", SYSTEMS[self.name], self.train_tied, ("lists", "features", "tie", *before),
                  cntk_settings(self.system_arguments()), self.home / "model"),
            *self.evaluation_stages(self.name, graphs),
        ]  # fmt: skip

    @property
    def packing(self) -> Stage:
        return Stage(
            "pack-tied", "a bundle: everything that recognition needs, in one file", self.pack,
            ("lists", "features", "lm", "graph-tied", "train-tied", "tune-tied", "decode-tied"),
        )  # fmt: skip

    def pack(self) -> int:
        return make_bundle(self.out, self.bundle, "lvcsr", rate=RATE, window=WINDOW) | self.calibrate()

    @property
    def bundle(self) -> Path:
        return self.out / "lvcsr.argo"

    def alignment_stage(self) -> Stage:
        return Stage("align", "training and development set aligned with the tied states", self.align,
                     ("lists", "features", "graph-tied", "train-tied"))  # fmt: skip

    def tie(self) -> int:
        from readers.htk.scp import write_feature_list, write_pairs

        files = {u: self.out / "features" / "mfcc" / f"{u.name}.mfc" for u in self.sets["train"]}
        listed = self.shared / "train.hcopy.list"
        write_pairs(listed, [(u.audio, file) for u, file in files.items()])
        lost = extract(CONFIG / "tying.hcopy", listed, self.workers, report=self.out / "reports" / "features.mfcc")
        report = write_feature_list(self.shared / "train.scp", [(u.name, file) for u, file in files.items()])
        lost |= account(self.out, report, "lists.mfcc")
        options = tying.TieOptions(
            alignment=self.out / "labels" / "states.mlf", features=self.shared / "train.scp",
            files=tying.StateFiles(state_list=self.out / "labels" / "states.list"), questions=str(QUESTIONS),
            growing=tying.TreeOptions(threshold=self.tying["threshold"], min_frames=self.tying["min_frames"]),
            transition_power=TRANSITION_POWER, out=self.hmms,
        )  # fmt: skip
        return lost | call("tie", options)

    def graph(self) -> int:
        lost = 0
        for name in ("tune-trained", *LMS):
            lost |= self.make_graph(name)
        return lost

    def make_graph(self, name: str) -> int:
        options = grammars.GraphFiles(
            mmf=(self.hmms / "hmmdefs",), hmm_list=self.hmms / "tiedlist", trees=self.hmms / "trees",
            hmms=self.shared / "distilled", dictionary=grammars.GraphDictionary(dict=self.dictionary),
            state_list=self.senones, lm=self.lm_file(name), out=self.graph_folder(name),
        )  # fmt: skip
        return call("graph", options)

    def begin_with(self, model: Path) -> None:
        """Store a trained model as the one from which the training starts, unless there is one."""
        begin = self.model.with_name(f"{self.model.name}.0")
        if not begin.exists():
            write_content(begin, model.read_bytes())

    def train_tied(self) -> int:
        labels = self.label_training(self.labels)
        if OVERRIDES.get(self.name) == "again.cntk":
            self.begin_with(self.shared / "model" / self.model.name)
        names = (f"SenoneList={self.senones}", f"SenoneLabels={labels}", f"NumSenones={count_lines(self.senones)}")
        return cntk(self.system_arguments(*names))

    def system_arguments(self, *settings: str) -> list[str]:
        configs = [CONFIG / name for name in ("tied.cntk", OVERRIDES.get(self.name)) if name]
        return [
            f"configFile={'+'.join(map(str, configs))}", f"ExpDir={self.out}", f"WorkDir={self.home}",
            f"randomSeed={self.seed}", "extendTraining=true", *settings, *self.overrides,
        ]  # fmt: skip

    def align(self) -> int:
        """Align the original utterances; the warped copies have the same labels."""
        from readers.htk.mlf import read_mlf, write_mlf
        from readers.htk.scp import read_scp, write_scp
        from recipes.cli.score import Shown

        home = self.out / "lvcsr" / "align"
        entries = [e for name in ("train", "dev") for e in read_scp(self.out / "lists" / f"{name}.scp")]
        plain = [e for e in entries if "/" not in e.key or e.key.startswith("plain/")]
        write_scp(home / "both.scp", [e._replace(logical=e.logical.removeprefix("plain/")) for e in plain])
        words = read_mlf(self.out / "labels" / "train.words.mlf")
        words = read_mlf(self.out / "labels" / "dev.words.mlf", into=words)
        write_mlf(home / "words.mlf", ((f"*/{name}.lab", labels) for name, labels in words.items()))
        lost = align(
            self.graph_folder("trained"), self.model, WINDOW, home / "states.mlf", infiles=home / "both.scp",
            words=home / "words.mlf", dictionary=self.dictionary,
        )  # fmt: skip
        reference = self.alignment.labels
        options = Shown(reference=reference, hypothesis=home / "states.mlf", boundaries=True, level=1, ignore=("sil",))
        return lost | call("score", options)

    @property
    def state_list(self) -> Path:
        return self.senones

    @property
    def model(self) -> Path:
        return self.home / "model" / "tied.dnn"

    def graph_folder(self, name: str) -> Path:
        return self.shared / "graph" / name


RECIPE = LvcsrOptions, compared
