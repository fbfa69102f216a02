"""TIMIT phone recognition with the CNTK book's DNN (7.1.1) and a phone bigram; the error rate is that of 39 phones.

worked example:
  argonaut recipe timit --data /corpora/TIMIT --out exp/timit     the LDC disc
  argonaut recipe timit --out exp/synthetic --size demo           a synthesised corpus of the same layout
ends with a line `PER xx.x%` for the core test set.

  argonaut recipe timit --data /corpora/TIMIT --out exp/timit --variants all
trains the eight example setups of the book (7.1.1-7.1.9) and ends with their frame and phone error rates.
`--variants recurrent` trains an LSTM, an LSTM with projection and a bidirectional one on the same features.
"""

import argparse
import shlex
from functools import cached_property
from pathlib import Path

from readers.common.environment import available_cores
from recipes.stage_settings import cntk_settings, file_settings
from recipes.stages import Stage, account, command, is_done, run_recipe, run_stages
from recipes.variants.arguments import add_variants_argument

CONFIG = Path(__file__).parent / "config"
FEATURES = CONFIG / "fbank24_zda.hcopy"
SIZES = ("demo", "full")
WINDOW = 11  # frames in the input of the network
RATE = 16000  # of the corpus, Hz
SETS = ("train", "dev", "test")
# The demo trains fewer epochs than the 25 of the book, to be short.
DEMO_OVERRIDES = ("TIMIT_TrainSimple=[SGD=[maxEpochs=12;learningRatesPerMB=0.8:3.2*8:0.8:0.08]]",)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--size", choices=SIZES, default="full", help="size of the synthesised corpus (default full)")
    parser.add_argument(
        "--set", dest="overrides", metavar="NAME=VALUE", action="append", default=[],
        help="setting of the training to replace, such as TIMIT_TrainSimple=[SGD=[maxEpochs=4]] (repeatable)",
    )  # fmt: skip
    add_variants_argument(parser)


def run(arguments: argparse.Namespace) -> int:
    recipe = Recipe(arguments)
    if arguments.variants:
        variants = recipe.variants(arguments)
        base = ("corpus", "features", "labels", "lm", "graph")
        shared = [stage for stage in recipe.stages() if stage.name in base]
        return run_stages([*shared, *variants.stages()], recipe.out, arguments.first, arguments.last, variants.closing)
    return run_recipe(recipe, arguments)


class Recipe:
    """The stages, and the places of their files, which are all below `out`."""

    def __init__(self, arguments: argparse.Namespace):
        self.out: Path = arguments.out
        self.synthetic = arguments.data is None
        self.size, self.seed = arguments.size, arguments.seed
        self.overrides: list[str] = arguments.overrides
        self.workers: int = arguments.workers or available_cores()
        self.data: Path = self.out / f"corpus-{self.size}-{self.seed}" if self.synthetic else arguments.data

    def stages(self) -> list[Stage]:
        corpus = [
            Stage("corpus", f"synthesise a {self.size} corpus of TIMIT's layout", self.corpus, (),
                  {"size": self.size, "seed": self.seed})
        ]  # fmt: skip
        return [
            *(corpus if self.synthetic else []),
            Stage("features", "24 mel channels with deltas and accelerations", self.features, ("corpus",),
                  {"data": str(self.data)} | file_settings(FEATURES)),
            Stage("labels", "a state for every frame, phone sequences", self.labels, ("corpus", "features")),
            Stage("lm", "a phone bigram of the training set", self.language_model, ("labels",)),
            Stage("graph", "the decoding graph", self.graph, ("labels", "lm")),
            Stage("train", "the network of 792-512x3-183", self.train, ("features", "labels"),
                  cntk_settings(self.cntk_arguments()), self.out / "model"),
            Stage("tune", "search options, on the development set", self.tune, ("labels", "lm", "graph", "train")),
            Stage("decode", "phones and lattices of the test set", self.decode, ("lm", "graph", "train", "tune")),
            Stage("score", "phone error rate on 39 phones", self.score, ("labels", "decode"), closes=True),
            Stage("pack", "a bundle: everything that recognition needs, in one file", self.pack,
                  ("labels", "lm", "graph", "train", "tune", "decode")),
        ]  # fmt: skip

    @cached_property
    def sets(self):
        from recipes.timit.corpus import find_sets

        return find_sets(self.data)

    def variants(self, arguments: argparse.Namespace):
        """Return the example setups of the book on this corpus; the second task is the dialect region."""
        from readers.tables.timit import read_phone_map
        from recipes.timit.grid import GRID
        from recipes.timit.prepare import PHONE_MAP
        from recipes.variants.run import Decoding, Task, Variants

        labels, lm = self.out / "labels", self.out / "lm.arpa"
        task = Task(
            config=CONFIG / "variants.cntk",
            sets=self.variant_sets,
            states=labels / "states.list",
            decoding={
                name: Decoding(self.out / "graph", lm, labels / f"{name}.phones.mlf") for name in ("dev", "test")
            },
            grid=GRID,
            unit="PER",
            data_stage="labels",
            fold=read_phone_map(PHONE_MAP),
            fbank=lambda name: self.out / "features" / f"{name}.fbank",
        )
        return Variants.from_arguments(task, arguments, self.workers, self.overrides)

    def variant_sets(self):
        """Return the sets after the corpus stage, which may have to synthesise them."""
        from recipes.variants.lists import Item

        return {name: [Item(u.name, u.audio, u.dialect) for u in us] for name, us in self.sets.items()}

    def corpus(self) -> int:
        from recipes.cli.console import progress_display
        from recipes.timit.synthesise import synthesise

        with progress_display("synthesise") as progress:
            report = synthesise(self.data, self.size, self.seed, self.workers, progress)
        return account(self.out, report, "corpus")

    def features(self) -> int:
        from readers.htk.scp import write_pairs

        pairs = [(u.audio, self.feature_file(u)) for name in SETS for u in self.sets[name]]
        write_pairs(self.out / "lists" / "hcopy.list", pairs)
        return command(
            "hcopy", "-C", FEATURES, "-S", self.out / "lists" / "hcopy.list",
            "--report", self.out / "reports" / "features", "-j", self.workers,
        )  # fmt: skip

    def labels(self) -> int:
        from readers.htk.scp import write_feature_list
        from recipes.timit import prepare

        labels = self.out / "labels"
        prepare.write_state_tables(labels)
        lost = 0
        for name in SETS:
            scp = self.out / "lists" / f"{name}.scp"
            report = write_feature_list(scp, ((u.name, self.feature_file(u)) for u in self.sets[name]))
            lost |= account(self.out, report, f"{name}.features")
            report = prepare.write_labels(
                self.sets[name], scp, labels / f"{name}.states.mlf", labels / f"{name}.phones.mlf"
            )
            lost |= account(self.out, report, f"{name}.labels")
        prepare.write_phone_dictionary(labels / "phones.dict")
        prepare.write_phone_text(labels / "train.phones.mlf", labels / "train.phones.txt")
        return lost

    def language_model(self) -> int:
        text = self.out / "labels" / "train.phones.txt"
        return command("lm", "estimate", "--text", text, "--order", 2, "--method", "wb", "-o", self.out / "lm.arpa")

    def graph(self) -> int:
        labels = self.out / "labels"
        return command(
            "graph", "--state-list", labels / "states.list", "--alignment", labels / "train.states.mlf",
            "--dict", labels / "phones.dict", "--no-optional-silence", "--drop-missing", "--lm", self.out / "lm.arpa",
            "--out", self.out / "graph",
        )  # fmt: skip

    def train(self) -> int:
        return command("cntk", *self.cntk_arguments(), f"stderr={self.out / 'log' / 'train'}")

    def cntk_arguments(self) -> list[str]:
        overrides = DEMO_OVERRIDES if self.synthetic and self.size == "demo" else ()
        return [
            f"configFile={CONFIG / 'timit.cntk'}", f"ExpDir={self.out}", f"randomSeed={self.seed}",
            "extendTraining=true", *overrides, *self.overrides,
        ]  # fmt: skip

    def tune(self) -> int:
        from decoder.scoring.words import read_words
        from readers.tables.timit import read_phone_map
        from recipes.decoding import choose_options, open_decoder, score_utterances, store_choice
        from recipes.timit.grid import GRID
        from recipes.timit.prepare import PHONE_MAP
        from recipes.tuning import Development

        development = Development(
            score_utterances(self.model, self.out / "lists" / "dev.scp", WINDOW),
            read_words(self.out / "labels" / "dev.phones.mlf"),
            fold=read_phone_map(PHONE_MAP),
        )
        decoder = open_decoder(self.out / "graph", self.out / "lm.arpa")
        chosen, score = choose_options(decoder, development, GRID, self.tuned_file, self.workers)
        store_choice(self.out / "graph", chosen, self.model, self.out / "lm.arpa")
        shown = ", ".join(f"{option} {value:g}" for option, value in chosen.items())
        print(f"dev PER {score.word_error_rate:.1f}% ({score.num_words} phones): {shown}", flush=True)
        return 0

    def decode(self) -> int:
        from recipes.decoding import read_choice, search_flags

        return command(
            "argon", "-graph", self.compiled_graph, "-lm", self.out / "lm.arpa", "-am", self.model,
            "-dnn_window_size", WINDOW, "-cntkmap", self.out / "graph" / "cntkmap",
            "-infiles", self.out / "lists" / "test.scp",
            *search_flags(read_choice(self.tuned_file)), "-outmlf", self.hypotheses,
            "-lattice-prefix", self.out / "decode" / "lattices" / "test",
        )  # fmt: skip

    def score(self) -> int:
        return command(
            "score", self.references, self.hypotheses, "--fold", "timit39", "--per", "--picture", self.picture,
            "--report", self.out / "reports" / "score",
        )  # fmt: skip

    def pack(self) -> int:
        return command(
            "pack", self.out, "--recipe", "timit", "--rate", RATE, "--window", WINDOW, "--name", "timit",
            "-o", self.bundle,
        ) | command(
            "calibrate", self.bundle, self.out / "labels" / "dev.phones.mlf", "--test", self.references,
            "--list", self.out / "lists" / "hcopy.list", "--fold", "timit39", "-o", self.bundle,
        )  # fmt: skip

    def closing(self) -> None:
        from decoder.scoring.error_counts import score
        from decoder.scoring.words import read_words
        from readers.tables.timit import read_phone_map
        from recipes.timit.prepare import PHONE_MAP

        total = score(read_words(self.references), read_words(self.hypotheses), fold=read_phone_map(PHONE_MAP)).total
        print("pictures:", f"{self.model}.png", self.picture)
        if is_done(self.out, "pack"):
            print("bundle:", self.bundle)
            self.print_next_steps(total.word_error_rate)
        print(f"PER {total.word_error_rate:.1f}%")

    def print_next_steps(self, error_rate: float) -> None:
        from recipes.cli.console import program_name

        audio, program = self.sets["test"][0].audio, program_name()
        print(f"The bundle recognises phones, the sounds of English; about {error_rate:.0f} of 100 are wrong.  Try")
        for command_line in (
            ("transcribe", self.bundle, audio),
            ("score", "-t", self.references, self.hypotheses, "--fold", "timit39"),
            ("plot", "tuning", self.tuned_file, "-o", self.out / "tuning.png"),
        ):
            print(" ", shlex.join([program, *map(str, command_line)]))

    @property
    def bundle(self) -> Path:
        return self.out / "timit.argo"

    @property
    def references(self) -> Path:
        return self.out / "labels" / "test.phones.mlf"

    @property
    def hypotheses(self) -> Path:
        return self.out / "decode" / "test.mlf"

    @property
    def picture(self) -> Path:
        return self.out / "decode" / "confusions.png"

    @property
    def compiled_graph(self) -> Path:
        return self.out / "graph" / "graph.dg"

    @property
    def tuned_file(self) -> Path:
        return self.out / "tune.json"

    @property
    def model(self) -> Path:
        return self.out / "model" / "cntkSpeech.dnn"

    def feature_file(self, utterance) -> Path:
        return self.out / "features" / f"{utterance.name}.fbank"
