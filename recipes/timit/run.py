"""TIMIT phone recognition with the CNTK book's DNN (7.1.1) and a phone bigram; the error rate is that of 39 phones.

The synthesised corpus has a dictionary, so that the same network recognises its words, too, with a word bigram.

worked example:
  argonaut recipe timit --data /corpora/TIMIT --out exp/timit     the LDC disc
  argonaut recipe timit --out exp/synthetic --size demo           a synthesised corpus of the same layout
ends with a line `PER xx.x% (test, ...)` for the core test set; the second, also with the word error rate.
"""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from decoder import grammars, graph
from readers.common.environment import available_cores
from readers.config.options import option
from recipes.evaluation import Evaluation, LanguageModel, rate_line
from recipes.job import RecipeOptions, RecipeResult, overrides
from recipes.packing import PHONE_MAP, LayoutName
from recipes.stage_settings import cntk_settings, file_settings
from recipes.stages import Stage, account, call, is_done
from recipes.steps import calibrate, cntk, estimate, extract, make_bundle
from recipes.tuning import Grid

if TYPE_CHECKING:
    from recipes.timit.corpus import Utterance

CONFIG = Path(__file__).parent / "config"
FEATURES = CONFIG / "fbank24_zda.hcopy"
WINDOW = 11  # frames in the input of the network
RATE = 16000  # of the corpus, Hz
SETS = ("train", "dev", "test")
SILENCE = "h#"
FRAMES_PER_SECOND = 100
BACKGROUND = 0.1  # duration of the recordings without speech, relative to the training set
# The demo trains fewer epochs than the 25 of the book, to be short.
DEMO_OVERRIDES = ("TIMIT_TrainSimple=[SGD=[maxEpochs=12;learningRatesPerMB=0.8:3.2*8:0.8:0.08]]",)


@dataclass(frozen=True, kw_only=True)
class TimitOptions(RecipeOptions):
    """Options of recipe timit."""

    size: Literal["demo", "full"] = option("full", "size of the synthesised corpus")
    overrides: tuple[str, ...] = overrides("of the training to replace, such as TIMIT_TrainSimple=[SGD=[maxEpochs=4]]")


class Recipe:
    """The stages, and the places of their files, which are all below `out`."""

    def __init__(self, options: RecipeOptions, size: str = "full", overrides: Sequence[str] = ()):
        self.out = options.out
        self.synthetic = options.data is None
        self.size = size
        self.seed = options.seed
        self.overrides = overrides
        self.workers = options.workers or available_cores()
        self.data = options.data or self.out / f"corpus-{self.size}-{self.seed}"

    def stages(self) -> list[Stage]:
        corpus = [
            Stage("corpus", f"synthesise a {self.size} corpus of TIMIT's layout", self.corpus, (),
                  {"size": self.size, "seed": self.seed})
        ]  # fmt: skip

        def also(text: str) -> str:
            return f", {text}" if self.synthetic else ""

        return [
            *(corpus if self.synthetic else []),
            Stage("features", "24 mel channels with deltas and accelerations", self.features, ("corpus",),
                  {"data": str(self.data)} | file_settings(FEATURES)),
            Stage("labels", "a state for every frame, phone sequences", self.labels, ("corpus", "features")),
            Stage("lm", "a phone bigram of the training set" + also("dictionary and bigram of words"),
                  self.language_model, ("labels",)),
            Stage("graph", "the decoding graph" + also("that of words"), self.graph, ("labels", "lm")),
            Stage("train", "the network of 792-512x3-183", self.train, ("features", "labels"),
                  cntk_settings(self.cntk_arguments()), self.out / "model"),
            Stage("tune", "search options, on the development set", self.tune, ("labels", "lm", "graph", "train")),
            Stage("decode", "phones" + also("words") + " of the test set, with lattices", self.decode,
                  ("lm", "graph", "train", "tune")),
            Stage("score", "phone error rate on 39 phones" + also("word error rate"), self.score,
                  ("labels", "decode"), closes=True),
            Stage("pack", "a bundle: everything that recognition needs, in one file", self.pack,
                  ("labels", "lm", "graph", "train", "tune", "decode")),
        ]  # fmt: skip

    @cached_property
    def sets(self) -> "dict[str, list[Utterance]]":
        from recipes.timit.corpus import find_sets

        return find_sets(self.data)

    def corpus(self) -> int:
        from recipes.cli.console import progress_display
        from recipes.timit.synthesise import synthesise

        with progress_display("synthesise") as progress:
            report = synthesise(self.data, self.size, self.seed, self.workers, progress)
        return account(self.out, report, "corpus")

    def features(self) -> int:
        from readers.htk.scp import write_pairs

        pairs = {name: [(u.audio, self.feature_file(u)) for u in self.sets[name]] for name in SETS}
        everything = self.out / "lists" / "hcopy.list"
        train = self.out / "lists" / "train.hcopy.list"
        write_pairs(everything, [pair for name in SETS for pair in pairs[name]])
        write_pairs(train, pairs["train"])
        lost = extract(FEATURES, train, self.workers, speech_mean=self.feature_config)
        return lost | extract(self.feature_config, everything, self.workers, report=self.out / "reports" / "features")

    def labels(self) -> int:
        from readers.htk.scp import write_feature_list
        from recipes.an4.prepare import write_words
        from recipes.timit import prepare

        labels = self.out / "labels"
        prepare.write_state_tables(labels)
        lost = 0
        for name in SETS:
            scp = self.out / "lists" / f"{name}.scp"
            report = write_feature_list(scp, ((u.name, self.feature_file(u)) for u in self.sets[name]))
            report.write(self.out / "reports" / f"{name}.features")  # the labels' summary counts them, too
            report = prepare.write_labels(
                self.sets[name], scp, labels / f"{name}.states.mlf", labels / f"{name}.phones.mlf"
            )
            lost |= account(self.out, report, f"{name}.labels")
            if self.synthetic:
                write_words(self.sets[name], labels / f"{name}.words.mlf")
        prepare.write_phone_dictionary(labels / "phones.dict")
        prepare.write_phone_text(labels / "train.phones.mlf", labels / "train.phones.txt")
        return lost | (self.add_background() if self.synthetic else 0)

    def add_background(self) -> int:
        """Write lists/training.scp and labels/training.mlf: the training set and recordings without speech."""
        from readers.htk.scp import write_feature_list
        from recipes.background import background_files, count_frames, join_mlfs, label_background, write_background

        lists = self.out / "lists"
        alignment = self.out / "labels" / "train.states.mlf"
        folder = self.out / "background"
        seconds = count_frames(lists / "train.scp", "") / FRAMES_PER_SECOND
        listed = write_background(folder, seconds, RATE, self.seed, BACKGROUND)
        report = self.out / "reports" / "features.background"
        lost = extract(self.feature_config, listed, self.workers, report=report)
        files = [(utterance.name, self.feature_file(utterance)) for utterance in self.sets["train"]]
        write_feature_list(lists / "training.scp", [*files, *background_files(folder)])
        join_mlfs(self.out / "labels" / "training.mlf", alignment, label_background(folder, alignment, SILENCE))
        return lost

    def language_model(self) -> int:
        from recipes.timit.synthesise import write_language

        text = self.out / "labels" / "train.phones.txt"
        words = self.words
        lost = estimate(text, self.out / "lm.arpa", order=2, method="wb")
        if self.synthetic:
            write_language(words, self.seed)
            lost |= estimate(words / "words.txt", words / "lm.arpa", words / "words.dict", order=2)
        return lost

    def graph(self) -> int:
        labels = self.out / "labels"
        words = self.words
        phones = grammars.GraphFiles(
            state_list=labels / "states.list", alignment=(labels / "train.states.mlf",),
            dictionary=grammars.GraphDictionary(dict=labels / "phones.dict"), lm=self.out / "lm.arpa",
            graph=graph.GraphOptions(optional_silence=False, drop_missing=True), out=self.out / "graph",
        )  # fmt: skip
        lost = call("graph", phones)
        if self.synthetic:
            options = replace(
                phones, dictionary=grammars.GraphDictionary(dict=words / "words.dict"), lm=words / "lm.arpa",
                graph=graph.GraphOptions(silence_topology="any-order"), out=words,
            )  # fmt: skip
            lost |= call("graph", options)
        return lost

    def train(self) -> int:
        return cntk([*self.cntk_arguments(), f"stderr={self.out / 'log' / 'train'}"])

    def cntk_arguments(self) -> list[str]:
        lists = (f"TrainList={self.out}/lists/training.scp", f"TrainLabels={self.out}/labels/training.mlf")
        overrides = DEMO_OVERRIDES if self.synthetic and self.size == "demo" else ()
        return [
            f"configFile={CONFIG / 'timit.cntk'}", f"ExpDir={self.out}", f"randomSeed={self.seed}",
            "extendTraining=true", *(lists if self.synthetic else ()), *overrides, *self.overrides,
        ]  # fmt: skip

    @property
    def evaluations(self) -> list[Evaluation]:
        """Those of phones and, with a synthesised corpus, of words."""
        from recipes.timit.grid import GRID, WORD_GRID

        def evaluation(units: str, lm: Path, graph: Path, grid: Grid, fold: Path | None = None) -> Evaluation:
            models = {units: LanguageModel(f"{units[:-1]} bigram", lm, graph, lm, graph)}
            return Evaluation(
                self.out, self.out, self.model, WINDOW, models, grid, self.workers, units=units, fold=fold
            )

        words = [evaluation("words", self.words / "lm.arpa", self.words, WORD_GRID)] if self.synthetic else []
        return [evaluation("phones", self.out / "lm.arpa", self.out / "graph", GRID, PHONE_MAP), *words]

    def tune(self) -> int:
        return max(evaluation.tune() for evaluation in self.evaluations)

    def decode(self) -> int:
        return max(evaluation.decode() for evaluation in self.evaluations)

    def score(self) -> int:
        return max(evaluation.score() for evaluation in self.evaluations)

    def pack(self) -> int:
        evaluation = self.evaluations[-1]
        layout: LayoutName = "timit-words" if self.synthetic else "timit"
        lost = make_bundle(self.out, self.bundle, layout, rate=RATE, window=WINDOW)
        return lost | calibrate(
            self.bundle, words=self.out / "labels" / f"dev.{evaluation.units}.mlf", test=evaluation.references,
            list=self.out / "lists" / "hcopy.list", fold=evaluation.fold,
        )  # fmt: skip

    def result(self) -> RecipeResult:
        evaluations = self.evaluations
        figures = tuple(figure for evaluation in evaluations for figure in evaluation.figures())
        pictures = (Path(f"{self.model}.png"), *(path for evaluation in evaluations for path in evaluation.pictures))
        lines = [f"pictures: {' '.join(map(str, pictures))}"]
        bundle = self.bundle if is_done(self.out, "pack") else None
        if bundle:
            lines += [f"bundle: {bundle}", *self.next_steps(evaluations[-1], figures[-1].value)]
        return RecipeResult(
            figures=figures, bundle=bundle, pictures=pictures, lines=(*lines, *map(rate_line, figures)),
            reports=tuple(path for evaluation in evaluations for path in evaluation.reports),
        )  # fmt: skip

    def next_steps(self, evaluation: Evaluation, error_rate: float) -> list[str]:
        """Return what can be done with the bundle, as lines for the shell."""
        from recipes.cli.console import program_name

        (name,) = evaluation.language_models
        audio = self.sets["test"][0].audio
        fold = ("--fold", "timit39") if evaluation.fold else ()
        command_lines = (
            ("transcribe", self.bundle, audio),
            ("score", "-t", evaluation.references, evaluation.hypotheses(name), *fold),
            ("plot", "tuning", evaluation.tuned_file(name), "-o", self.out / "tuning.png"),
        )
        return [
            f"The bundle recognises {evaluation.units}; about {error_rate:.0f} of 100 are wrong.  Try",
            *(f"  {shlex.join([program_name(), *map(str, words)])}" for words in command_lines),
        ]

    @property
    def bundle(self) -> Path:
        return self.out / "timit.argo"

    @property
    def feature_config(self) -> Path:
        return self.out / "config" / "plain.hcopy"

    @property
    def words(self) -> Path:
        """The directory of what belongs to words: sentences, dictionary, language model, graph."""
        return self.out / "words"

    @property
    def model(self) -> Path:
        return self.out / "model" / "cntkSpeech.dnn"

    def feature_file(self, utterance: "Utterance") -> Path:
        return self.out / "features" / f"{utterance.name}.fbank"


RECIPE = TimitOptions, lambda options: Recipe(options, options.size, options.overrides)
