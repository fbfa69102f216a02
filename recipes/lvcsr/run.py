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

import argparse
from pathlib import Path

from readers.common.files import atomic_write
from recipes.an4.recipe import LMS, RATE, TRANSITION_POWER, WINDOW, Recipe
from recipes.stage_settings import cntk_settings, file_settings
from recipes.stages import Stage, account, command, run_stages

CONFIG = Path(__file__).parent / "config"
QUESTIONS = Path(__file__).parent / "data" / "questions.hed"
SYSTEMS = {
    "tied": "the network of 1680-768x4 on tied triphone states",
    "natural": "the same with natural gradient, half the epochs",
    "continued": "the same, trained further on the same alignments",
    "realigned": "the same, trained further on its own alignments",
}
# Configurations that replace settings of tied.cntk.
OVERRIDES = {"natural": "natural.cntk", "continued": "again.cntk", "realigned": "again.cntk"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--threshold", type=float, default=400.0, metavar="X", help="minimum gain of a split in ln likelihood (400)"
    )
    parser.add_argument("--min-frames", type=float, default=100.0, metavar="N", help="minimum frames of a state (100)")
    parser.add_argument(
        "--set", dest="overrides", metavar="NAME=VALUE", action="append", default=[],
        help="setting of the trainings to replace, such as LVCSR_Train=[SGD=[maxEpochs=4]] (repeatable)",
    )  # fmt: skip


def run(arguments: argparse.Namespace) -> int:
    phones = Recipe(with_overrides(arguments, other="LVCSR_Train", network="dnn"))
    arguments = with_overrides(arguments, other="AN4_Train", network="dnn")
    tied, natural, continued, realigned = (Tied(arguments, name) for name in SYSTEMS)
    stages = [*phones.stages(), *tied.tying_stages(), *tied.system_stages(), tied.packing, *natural.system_stages()]
    stages += [tied.alignment_stage(), *realigned.system_stages(), *continued.system_stages()]

    def closing() -> None:
        for system, what in (
            (phones, f"monophones, {count_lines(phones.out / 'labels' / 'states.list')} states"),
            (tied, f"tied triphones, {count_lines(tied.senones)} states"),
            (natural, "the same with natural gradient, half the epochs"),
            (continued, "trained further on the same alignments"),
            (realigned, "trained further on its own alignments"),
        ):
            rates = "  ".join(f"{system.total(name).word_error_rate:.1f}%" for name in LMS)
            print(f"WER {rates}  ({', '.join(LMS.values())}): {what}")

    return run_stages(stages, phones.out, arguments.first, arguments.last, closing)


def with_overrides(arguments: argparse.Namespace, other: str, network: str) -> argparse.Namespace:
    """Return the arguments for the recipe of a network, without the settings of another command."""
    overrides = [text for text in arguments.overrides if text.partition("=")[0].strip().lower() != other.lower()]
    return argparse.Namespace(**vars(arguments) | {"overrides": overrides, "network": network})


def count_lines(path: Path) -> int:
    from readers.htk.frame_labels import read_state_list

    return len(read_state_list(path))


class Tied(Recipe):
    """The AN4 recipe with tied states as outputs.  name: one of SYSTEMS."""

    def __init__(self, arguments: argparse.Namespace, name: str):
        super().__init__(arguments)
        self.name = name
        self.tying = {"threshold": arguments.threshold, "min_frames": arguments.min_frames}
        self.shared = self.out / "lvcsr" / "tied"  # all systems share the tied states
        self.home = self.out / "lvcsr" / name
        self.hmms, self.senones = self.shared / "hmms", self.shared / "hmms" / "senones.list"
        aligned = self.out / "lvcsr" / "align" / "states.mlf"
        self.labels = aligned if name == "realigned" else self.hmms / "states.mlf"

    def tying_stages(self) -> list[Stage]:
        return [
            Stage("tie", "cepstra of the training set; tied states by decision trees", self.tie, ("lists",),
                  self.tying | file_settings(QUESTIONS, CONFIG / "tying.hcopy")),
            Stage("graph-tied", "cross-word triphone graphs for the three LMs", self.graph, ("lists", "lm", "tie")),
        ]  # fmt: skip

    def system_stages(self) -> list[Stage]:
        train, tune, decode = (f"{stage}-{self.name}" for stage in ("train", "tune", "decode"))
        before = {"continued": ("train-tied",), "realigned": ("train-tied", "align")}.get(self.name, ())
        graphs = ("lists", "features", "lm", "graph-tied")
        return [
            Stage(train, SYSTEMS[self.name], self.train_tied, ("lists", "features", "tie", *before),
                  cntk_settings(self.cntk_arguments()), self.home / "model"),
            Stage(tune, "search options, on the development set", self.tune, (*graphs, train)),
            Stage(decode, "words and lattices of the test set", self.decode, (*graphs, train, tune)),
            Stage(f"score-{self.name}", "word error rates", self.score, ("lists", decode), closes=True),
        ]  # fmt: skip

    @property
    def packing(self) -> Stage:
        return Stage(
            "pack-tied", "a bundle: everything that recognition needs, in one file", self.pack,
            ("lists", "features", "lm", "graph-tied", "train-tied", "tune-tied", "decode-tied"),
        )  # fmt: skip

    def pack(self) -> int:
        return command(
            "pack", self.out, "--recipe", "lvcsr", "--rate", RATE, "--window", WINDOW, "--name", "lvcsr",
            "--language", "en", "-o", self.bundle,
        ) | command(
            "calibrate", self.bundle, self.out / "labels" / "dev.words.mlf", "--test", self.evaluation.references,
            "--list", self.out / "lists" / "plain.hcopy.list", "-o", self.bundle,
        )  # fmt: skip

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
        lost = command(
            "hcopy", "-C", CONFIG / "tying.hcopy", "-S", listed,
            "--report", self.out / "reports" / "features.mfcc", "-j", self.workers,
        )  # fmt: skip
        report = write_feature_list(self.shared / "train.scp", [(u.name, file) for u, file in files.items()])
        lost |= account(self.out, report, "lists.mfcc")
        return lost | command(
            "tie", "--alignment", self.out / "labels" / "states.mlf",
            "--state-list", self.out / "labels" / "states.list", "--features", self.shared / "train.scp",
            "--questions", QUESTIONS, "--threshold", self.tying["threshold"], "--min-frames", self.tying["min_frames"],
            "--transition-power", TRANSITION_POWER, "--out", self.hmms,
        )  # fmt: skip

    def graph(self) -> int:
        lost = 0
        for name in ("tune-trained", *LMS):
            lost |= self.make_graph(name)
        return lost

    def make_graph(self, name: str) -> int:
        return command(
            "graph", "--mmf", self.hmms / "hmmdefs", "--hmm-list", self.hmms / "tiedlist",
            "--trees", self.hmms / "trees", "--hmms", self.shared / "distilled",
            "--dict", self.dictionary, "--state-list", self.senones,
            "--lm", self.lm_file(name), "--out", self.graph_folder(name),
        )  # fmt: skip

    def begin_with(self, model: Path) -> None:
        """Store a trained model as the one from which the training starts, unless there is one."""
        begin = self.model.with_name(f"{self.model.name}.0")
        if not begin.exists():
            with atomic_write(begin, "wb") as file:
                file.write(model.read_bytes())

    def train_tied(self) -> int:
        labels = self.label_training(self.labels)
        if OVERRIDES.get(self.name) == "again.cntk":
            self.begin_with(self.shared / "model" / self.model.name)
        return command(
            "cntk", *self.cntk_arguments(f"SenoneList={self.senones}", f"SenoneLabels={labels}",
                                         f"NumSenones={count_lines(self.senones)}"),
        )  # fmt: skip

    def cntk_arguments(self, *settings: str) -> list[str]:
        configs = [CONFIG / name for name in ("tied.cntk", OVERRIDES.get(self.name)) if name]
        return [
            f"configFile={'+'.join(map(str, configs))}", f"ExpDir={self.out}", f"WorkDir={self.home}",
            f"randomSeed={self.seed}", "extendTraining=true", *settings, *self.overrides,
        ]  # fmt: skip

    def align(self) -> int:
        """Align the original utterances; the warped copies have the same labels."""
        from readers.htk.mlf import read_mlf, write_mlf
        from readers.htk.scp import read_scp, write_scp

        home = self.out / "lvcsr" / "align"
        entries = [e for name in ("train", "dev") for e in read_scp(self.out / "lists" / f"{name}.scp")]
        plain = [e for e in entries if "/" not in e.key or e.key.startswith("plain/")]
        write_scp(home / "both.scp", [e._replace(logical=e.logical.removeprefix("plain/")) for e in plain])
        words = read_mlf(self.out / "labels" / "train.words.mlf")
        words = read_mlf(self.out / "labels" / "dev.words.mlf", into=words)
        write_mlf(home / "words.mlf", ((f"*/{name}.lab", labels) for name, labels in words.items()))
        lost = command(
            "argon", "-graph", self.graph_folder("trained") / "graph.dg", "-alignmlf", home / "words.mlf",
            "--dict", self.dictionary, "-am", self.model, "-dnn_window_size", WINDOW,
            "-cntkmap", self.graph_folder("trained") / "cntkmap", "-infiles", home / "both.scp",
            "-detailed-alignment", "-outmlf", home / "states.mlf",
        )  # fmt: skip
        return lost | command(
            "score", self.alignment.labels, home / "states.mlf", "--boundaries", "--level", 1, "-z", "sil"
        )

    @property
    def model(self) -> Path:
        return self.home / "model" / "tied.dnn"

    def graph_folder(self, name: str) -> Path:
        return self.shared / "graph" / name
