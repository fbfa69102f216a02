"""The stages of recipe an4, and the places of their files; the recipes that are built on it share them."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from decoder import gaussians, grammars, graph
from readers.common.environment import available_cores
from recipes.an4.corpus import FLAT_LMS, Alignment, Utterance, corpus_of, find_sets
from recipes.evaluation import Evaluation, language_models
from recipes.job import RecipeOptions, RecipeResult
from recipes.packing import LayoutName
from recipes.stage_settings import cntk_settings, file_settings
from recipes.stages import Stage, account, call, is_done
from recipes.steps import calibrate, cntk, estimate, extract, extract_with_mean, make_bundle

CONFIG = Path(__file__).parent / "config"
FEATURES = CONFIG / "fbank40_zd.hcopy"
CEPSTRA = Path(__file__).parents[1] / "own" / "config" / "mfcc16k.hcopy"  # for the flat start
WINDOW = 21  # frames in the input of the DNN
RATE = 16000  # of the corpus, Hz
SILENCE = "sil"
TRANSITION_POWER = 0.3  # compensates for the small acweight of 0.15
LMS = {"flat": "flat LM", "trained": "LM trained on the transcripts"}  # in the order they are reported


@dataclass(frozen=True)
class Acoustic:
    """A network that the recipe can train.

    help: description.
    config: file in config/.
    folder: directory of its results, below that of the run.
    bundle: layout of what becomes a bundle.
    window: frames in its input; for a recurrent network, number of consecutive frames.
    on_dnn: whether it is built on the trained DNN.
    """

    help: str
    config: str
    folder: str
    bundle: LayoutName
    window: int
    on_dnn: bool = False


NETWORKS = {
    "dnn": Acoustic("the network of 1680-768x4 on monophone states", "an4.cntk", "", "an4", WINDOW),
    "blstm": Acoustic(
        "the bidirectional LSTM, two layers of 256 cells in each direction", "blstm.cntk", "blstm", "an4-blstm", 1
    ),
    "dnn-blstm": Acoustic(
        "the bidirectional LSTM on top of the DNN, 128 cells in each direction",
        "dnn_blstm.cntk",
        "dnn-blstm",
        "an4-dnn-blstm",
        WINDOW,
        True,
    ),
}


def own_name(stage: str, network: str) -> str:
    """Return the name of a stage that belongs to one of the networks."""
    return stage if network == "dnn" else f"{stage}-{network}"


class Recipe:
    """The stages, and the places of their files, which are all below `out`."""

    def __init__(self, options: RecipeOptions, overrides: Sequence[str] = (), network: str = "dnn"):
        self.data = corpus_of(options.data)
        self.out = options.out
        self.seed = options.seed
        self.overrides = overrides
        self.network = network
        self.acoustic = NETWORKS[network]
        self.home = self.out / self.acoustic.folder
        self.workers = options.workers or available_cores()
        self.sets = find_sets(self.data)
        self.alignment = Alignment.of(self.data, self.out / "flat")
        self.dictionary = self.out / "words.dict"

    def shared_stages(self) -> list[Stage]:
        """Return the stages that the systems have in common."""
        data = {"data": str(self.data)} | file_settings(FEATURES, self.alignment.dictionary)
        return [
            Stage("lists", "lists, state labels, transitions, transcripts", self.lists, (), data),
            Stage("features", "40 mel channels with deltas; the training set also with warped frequency",
                  self.features, ("lists",)),
            Stage("lm", "4-grams of the training transcripts, with and without the development speakers", self.lm,
                  ("lists",)),
        ]  # fmt: skip

    def stages(self) -> list[Stage]:
        train, tune, decode, score = (own_name(name, self.network) for name in ("train", "tune", "decode", "score"))
        return [
            *self.shared_stages(),
            Stage("graph", "decoding graphs for these and for the flat LM", self.graph, ("lists", "lm")),
            *([self.training("dnn")] if self.acoustic.on_dnn else []),
            self.training(self.network),
            Stage(tune, "search options, on the development set", self.evaluation.tune,
                  ("lists", "features", "graph", train)),
            Stage(decode, "words and lattices of the test set", self.evaluation.decode,
                  ("features", "graph", train, tune)),
            Stage(score, "word error rates", self.evaluation.score, ("lists", decode), closes=True),
            self.packing,
        ]  # fmt: skip

    def training(self, network: str) -> Stage:
        acoustic = NETWORKS[network]
        return Stage(
            own_name("train", network), acoustic.help, lambda: self.train(acoustic),
            ("lists", "features", *(["train"] if acoustic.on_dnn else [])),
            cntk_settings(self.cntk_arguments(acoustic)), self.out / acoustic.folder / "model",
        )  # fmt: skip

    @property
    def packing(self) -> Stage:
        stage_names = (own_name(name, self.network) for name in ("train", "tune", "decode"))
        return Stage(
            own_name("pack", self.network), "a bundle: everything that recognition needs, in one file", self.pack,
            ("lists", "features", "lm", "graph", *stage_names),
        )  # fmt: skip

    def evaluation_stages(self, name: str, graphs: Sequence[str]) -> list[Stage]:
        """Return the stages after the training of a system.  graphs: those that make what decoding needs."""
        train, tune, decode = (f"{stage}-{name}" for stage in ("train", "tune", "decode"))
        return [
            Stage(tune, "search options, on the development set", self.evaluation.tune, (*graphs, train)),
            Stage(decode, "words and lattices of the test set", self.evaluation.decode, (*graphs, train, tune)),
            Stage(f"score-{name}", "word error rates", self.evaluation.score, ("lists", decode), closes=True),
        ]

    @cached_property
    def num_states(self) -> int:
        """The number of context-independent states, also before a flat start."""
        from readers.htk.frame_labels import read_state_list
        from recipes.an4 import prepare

        if self.alignment.is_given:
            return len(read_state_list(self.alignment.states))
        return prepare.count_flat_states(self.alignment.dictionary, [*self.sets["train"], *self.sets["dev"]])

    def lists(self) -> int:
        from readers.htk.scp import write_pairs
        from recipes.an4 import prepare

        train, dev, test = (self.sets[name] for name in ("train", "dev", "test"))
        for warp in prepare.WARPS:
            name = prepare.warp_name(warp)
            utterances = [*train, *dev, *test] if warp == 1.0 else train
            pairs = [(u.audio, self.feature_file(name, u)) for u in utterances]
            write_pairs(self.out / "lists" / f"{name}.hcopy.list", pairs)
        write_pairs(self.out / "lists" / "train.hcopy.list", [(u.audio, self.feature_file("plain", u)) for u in train])
        prepare.write_pronunciations(self.alignment, self.dictionary)
        lost = 0 if self.alignment.is_given else self.flat_start([*train, *dev])
        prepare.write_states(self.alignment, train, dev, self.out / "labels", TRANSITION_POWER)
        for name, utterances in self.sets.items():
            prepare.write_words(utterances, self.out / "labels" / f"{name}.words.mlf")
        prepare.write_text(train, self.out / "lm" / "train.txt")
        prepare.write_text([*train, *dev], self.out / "lm" / "train_and_dev.txt")
        return lost

    def flat_start(self, utterances: list[Utterance]) -> int:
        """Make the alignment that the corpus lacks."""
        from readers.htk.scp import write_feature_list, write_pairs
        from recipes.an4 import prepare

        home = self.alignment.labels.parent
        prepare.write_words(utterances, home / "words.mlf")
        files = [(utterance.name, home / "features" / f"{utterance.name}.mfc") for utterance in utterances]
        write_pairs(home / "hcopy.list", [(u.audio, file) for u, (_, file) in zip(utterances, files)])
        report = self.out / "reports" / "features.flat"
        lost = extract_with_mean(CEPSTRA, home / "mean.hcopy", home / "hcopy.list", self.workers, report=report)
        lost |= account(self.out, write_feature_list(home / "features.scp", files), "lists.flat")
        options = gaussians.FlatStartOptions(
            features=home / "features.scp", words=home / "words.mlf", out=home,
            dictionary=gaussians.SpokenDictionary(dict=self.dictionary),
        )  # fmt: skip
        return lost | call("flatstart", options, workers=self.workers)

    def features(self) -> int:
        from readers.htk.scp import write_feature_list
        from recipes.an4 import prepare
        from recipes.background import FRAME, background_files, count_frames, write_background

        lists = self.out / "lists"
        config = self.out / "config"
        background = self.out / "background"
        reports = self.out / "reports"
        mean = config / "plain.hcopy"
        lost = extract(FEATURES, lists / "train.hcopy.list", self.workers, speech_mean=mean)
        for warp in prepare.WARPS:
            name = prepare.warp_name(warp)
            warped = config / f"{name}.hcopy"
            listed = lists / f"{name}.hcopy.list"
            prepare.write_warped_config(mean, warp, warped)
            lost |= extract(warped, listed, self.workers, report=reports / f"features.{name}")
        for set_name, utterances in self.sets.items():
            warps = prepare.WARPS if set_name == "train" else (1.0,)
            files = []
            for copy in map(prepare.warp_name, warps):
                prefix = f"{copy}/" if set_name == "train" else ""
                files += [(f"{prefix}{utterance.name}", self.feature_file(copy, utterance)) for utterance in utterances]
            report = write_feature_list(lists / f"{set_name}.scp", files)
            lost |= account(self.out, report, f"lists.{set_name}")
            if set_name == "train":
                trained = files
        listed = write_background(background, count_frames(lists / "train.scp", "plain/") * FRAME, RATE, self.seed)
        lost |= extract(mean, listed, self.workers, report=reports / "features.background")
        write_feature_list(lists / "training.scp", [*trained, *background_files(background)])
        self.label_training(self.out / "labels" / "states.mlf")
        return lost

    def label_training(self, alignment: Path) -> Path:
        """Write the labels of the training set and of the recordings without speech beside an alignment."""
        from recipes.background import join_mlfs, label_background

        labels = alignment.with_name("training.mlf")
        join_mlfs(labels, alignment, label_background(self.out / "background", alignment, SILENCE))
        return labels

    def lm(self) -> int:
        from recipes.an4 import prepare

        lost = 0
        if self.lm_file("flat").parent == self.out / "lm":  # the corpus has none
            words = self.out / "lm" / "words.txt"
            prepare.write_all_words(self.dictionary, words)
            lost = estimate(words, self.lm_file("flat"), order=1, method="wb")
        for name, source in (("tune-trained", "train"), ("trained", "train_and_dev")):
            lost |= estimate(self.out / "lm" / f"{source}.txt", self.lm_file(name), self.dictionary, order=4)
        return lost

    def graph(self) -> int:
        lost = 0
        for name in ("tune-trained", *LMS):
            options = grammars.GraphFiles(
                state_list=self.out / "labels" / "states.list", transitions=self.out / "labels" / "transitions",
                dictionary=grammars.GraphDictionary(dict=self.dictionary), lm=self.lm_file(name),
                graph=graph.GraphOptions(silence_topology="any-order"), out=self.graph_folder(name),
            )  # fmt: skip
            lost |= call("graph", options)
        return lost

    def train(self, acoustic: Acoustic) -> int:
        return cntk(self.cntk_arguments(acoustic))

    def cntk_arguments(self, acoustic: Acoustic) -> list[str]:
        return [
            f"configFile={CONFIG / acoustic.config}", f"ExpDir={self.out}", f"ScriptDir={CONFIG}",
            f"randomSeed={self.seed}", "extendTraining=true", f"NumStates={self.num_states}", *self.overrides,
        ]  # fmt: skip

    @property
    def evaluation(self) -> Evaluation:
        from recipes.an4.grid import GRID

        models = language_models(LMS, self.lm_file, self.graph_folder)
        window = self.acoustic.window
        return Evaluation(self.out, self.home, self.model, window, models, GRID, self.workers, "*-%%%%*-?")

    def pack(self) -> int:
        layout = self.acoustic.bundle
        window = self.acoustic.window
        return make_bundle(self.out, self.bundle, layout, rate=RATE, window=window) | self.calibrate()

    def calibrate(self) -> int:
        dev = self.out / "labels" / "dev.words.mlf"
        plain = self.out / "lists" / "plain.hcopy.list"
        return calibrate(self.bundle, words=dev, test=self.evaluation.references, list=plain)

    def result(self) -> RecipeResult:
        return self.evaluation.result(self.bundle if is_done(self.out, self.packing.name) else None)

    @property
    def bundle(self) -> Path:
        return self.out / f"{own_name('an4', self.network)}.argo"

    @property
    def state_list(self) -> Path:
        """The names of the network's outputs."""
        return self.out / "labels" / "states.list"

    @property
    def model(self) -> Path:
        return self.home / "model" / f"an4.{self.network}"

    def feature_file(self, copy: str, utterance: Utterance) -> Path:
        return self.out / "features" / copy / f"{utterance.name}.fbank"

    def lm_file(self, name: str) -> Path:
        candidates = (self.data / file for file in FLAT_LMS if name == "flat")
        return next((file for file in candidates if file.exists()), self.out / "lm" / f"{name}.arpa")

    def graph_folder(self, name: str) -> Path:
        return self.out / "graph" / name
