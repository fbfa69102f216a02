"""Your own corpus: from recordings, transcripts and a pronunciation dictionary to a recogniser, with nothing else.

worked example: `data` contains a folder for each speaker, with recordings and their transcripts of the same name,
  data/anna/one.wav  data/anna/one.txt  data/ben/two.flac  data/ben/two.txt ...
Then
  argonaut recipe own --data data --dict words.dict --out exp/mine
trains a recogniser and ends with its word error rate on speakers that were held out:
  bundle: exp/mine/own.argo
  WER 4.3% (test, 130 utterances, 773 words, LM trained on the transcripts)
after which
  argonaut transcribe exp/mine/own.argo speech.wav
prints the words of speech.wav.

  argonaut recipe own --data audio.scp --alignments states.mlf --dict words.dict --out exp/mine
begins with alignments of HTK instead of a flat start; audio.scp lists the audio files, and the words are those in
states.mlf or in --words FILE.

--data is a folder, a Kaldi data directory, an SCP of audio files, or another corpus that `argonaut import` reads or
has written.  A tenth of the speakers is held out for tuning, another for the test.  Audio may have any format and any
rate of 8 kHz or more.  The more speech the better; 20 minutes are enough for a small vocabulary.
"""

import argparse
from collections import Counter
from functools import cached_property
from pathlib import Path

from readers.common.environment import available_cores
from readers.common.files import atomic_write
from readers.common.text import read_bytes
from readers.errors import ConfigError
from recipes.cli.dictionaries import add_dictionary_options, open_dictionary
from recipes.evaluation import Evaluation, language_models
from recipes.own.sizes import SPEEDS
from recipes.stage_settings import cntk_settings, file_settings
from recipes.stages import Stage, account, command, is_done, run_recipe

CONFIG = Path(__file__).parent / "config"
WINDOW = 21  # frames in the input of the network
TRANSITION_POWER = 0.3  # compensates for a small acoustic weight
SILENCE = "sil"
# The node for alignment: without the division by priors, silence keeps the frames beside words (RESULTS.md).
LOG_POSTERIORS = "HLast"
LEAST_MINUTES = 15.0
ORDER = 4  # of the language model


def add_arguments(parser: argparse.ArgumentParser) -> None:
    from readers.corpora.importing import KINDS

    parser.add_argument("--dict", metavar="FILE", help="pronunciation dictionary")
    parser.add_argument(
        "--alignments",
        type=Path,
        metavar="MLF",
        help="alignments to begin with, of states or phones, as of HTK's HVite",
    )
    parser.add_argument(
        "--silence", default="sil,sp", metavar="NAMES",
        help="phones of silence in --alignments, first the one with all states (sil,sp)",
    )  # fmt: skip
    parser.add_argument(
        "--words", type=Path, metavar="MLF", help="of an SCP: the words of its utterances (default: from --alignments)"
    )
    add_dictionary_options(parser)
    parser.add_argument(
        "--g2p", type=Path, metavar="FILE", help="model of argonaut g2p, for words without a pronunciation"
    )
    parser.add_argument(
        "--kind", choices=KINDS, help="kind of the corpus, as of argonaut import (default: by its files)"
    )
    parser.add_argument(
        "--lm", type=Path, metavar="FILE", help="ARPA language model, used besides that of the transcripts"
    )
    parser.add_argument(
        "--text", type=Path, metavar="FILE", help="sentences, one per line, for the language model of the transcripts"
    )
    for name in ("dev", "test"):
        parser.add_argument(
            f"--{name}-speakers", metavar="NAMES",
            help=f"speakers of the {name} set: a file, or names separated by commas (default: a tenth)",
        )  # fmt: skip
    parser.add_argument(
        "--speaker-characters", type=int, default=0, metavar="N",
        help="of a folder: the first N characters of a file name are the speaker, not the name of the folder",
    )  # fmt: skip
    parser.add_argument("--channel", type=int, metavar="N", help="channel of recordings with several, counted from 0")
    parser.add_argument("--rate", type=int, choices=(8000, 16000), help="sample rate in Hz (default: as the audio has)")
    parser.add_argument(
        "--min-minutes", type=float, default=LEAST_MINUTES, metavar="X",
        help=f"least amount of speech in minutes ({LEAST_MINUTES:g})",
    )  # fmt: skip
    parser.add_argument("--language", default="", metavar="TAG", help="language for the bundle, such as en or de-AT")
    parser.add_argument(
        "--set", dest="overrides", metavar="NAME=VALUE", action="append", default=[],
        help="setting of both trainings to replace, such as Hidden=512*3 (repeatable)",
    )  # fmt: skip


def run(arguments: argparse.Namespace) -> int:
    return run_recipe(Recipe(arguments), arguments)


class Recipe:
    """The stages, and the places of their files, which are all below `out`."""

    def __init__(self, arguments: argparse.Namespace):
        from readers.corpora.importing import is_imported

        self.arguments = arguments
        if arguments.data is None or arguments.dict is None:
            missing = "--data DIR, a corpus" if arguments.data is None else "--dict FILE, a pronunciation dictionary"
            raise ConfigError(f"recipe own: no {missing}; expected --data and --dict")
        files = ("data", "dict", "alignments", "words", "lm", "text", "g2p")
        for path in (getattr(arguments, name) for name in files):
            if path is not None:
                Path(path).stat()
        self.data, self.out = arguments.data, arguments.out
        self.seed, self.overrides = arguments.seed, arguments.overrides
        self.workers = arguments.workers or available_cores()
        self.corpus = self.data if is_imported(self.data) else self.out / "corpus"
        self.dictionary = self.out / "words.dict"
        self.hmms, self.senones = self.out / "hmms", self.out / "hmms" / "senones.list"
        self.flat, self.aligned = self.out / "flat", self.out / "align" / "states.mlf"
        self.copies = self.out / "copies"
        self.given_lm: Path | None = arguments.lm
        self.language_models = {"trained": "LM trained on the transcripts"}
        if self.given_lm is not None:
            self.language_models |= {"given": self.given_lm.name}

    def stages(self) -> list[Stage]:
        given = self.arguments
        data = {name: getattr(given, name) for name in ("kind", "speaker_characters")} | {"data": str(self.data)}
        data |= file_settings(Path(given.dict), given.words)
        silences = {"silence": given.silence} if given.alignments else {}
        options = (
            "dict_format",
            "strip_stress",
            "map_phones",
            "dev_speakers",
            "test_speakers",
            "channel",
            "rate",
            "min_minutes",
        )
        lists = {name: getattr(given, name) for name in options} | silences
        return [
            Stage("import", "recordings, words and speakers of the corpus", self.import_corpus, (), data),
            Stage("lists", "sets, dictionary, transcripts", self.lists, ("import",),
                  lists | file_settings(given.text, given.g2p, given.alignments)),
            Stage("features", "mel channels for the network, of the training set also with warped frequency; cepstra",
                  self.features, ("lists",), file_settings(*sorted(CONFIG.glob("*.hcopy")))),
            Stage("alignments", "the given alignments", self.take_alignments, ("lists", "features"),
                  silences | file_settings(given.alignments)) if given.alignments else
            Stage("flatstart", "Gaussian models of phones, from nothing, and their alignment", self.flatstart,
                  ("lists", "features")),
            Stage("tie", "triphones with states tied by decision trees", self.tie,
                  ("features", "alignments" if given.alignments else "flatstart")),
            Stage("lm", "language models of the transcripts, with and without the development set", self.lm,
                  ("lists",), file_settings(self.given_lm)),
            Stage("graph", "cross-word triphone graphs for the language models", self.graph, ("lists", "tie", "lm")),
            self.training("train-first", first=True),
            Stage("align", "alignment of the training set by this network", self.align,
                  ("features", "graph", "train-first")),
            Stage("copies", "copies of the training set at other speeds, background without speech", self.make_copies,
                  ("features", "align"), {"speeds": ",".join(SPEEDS)}),
            self.training("train", first=False),
            Stage("tune", "search options, on the development set", lambda: self.evaluation.tune(),
                  ("features", "lm", "graph", "train")),
            Stage("decode", "words and lattices of the test set", lambda: self.evaluation.decode(),
                  ("features", "lm", "graph", "train", "tune")),
            Stage("score", "word error rate", lambda: self.evaluation.score(), ("lists", "decode"), closes=True),
            Stage("pack", "a bundle: everything that recognition needs, in one file", self.pack,
                  ("lists", "features", "lm", "graph", "train", "tune", "decode"), {"language": given.language}),
        ]  # fmt: skip

    def training(self, name: str, first: bool) -> Stage:
        what = "a network, to align the training set" if first else "the network on this alignment and the copies"
        return Stage(
            name, what, lambda: self.train(first), ("features", "tie", *(() if first else ("align", "copies"))),
            cntk_settings(self.cntk_arguments(first, ["NumSenones=1"])), self.home(first) / "model",
        )  # fmt: skip

    def import_corpus(self) -> int:
        from readers.corpora.importing import guess_kind
        from readers.dictionaries.case import best_case
        from readers.htk.mlf import read_mlf

        if self.corpus == self.data:
            print(f"{self.data}: imported before")
            return 0
        known = {entry.word for entry in open_dictionary(self.arguments)}
        given = self.arguments
        words: list[object] = ["import", given.kind or guess_kind(self.data), self.data, "--out", self.corpus]
        words += ["--dict", given.dict, "--dict-format", given.dict_format]
        if words[1] == "htk":
            words += ["--words", given.words or given.alignments or "words.mlf"]
        words += ["--speaker-characters", given.speaker_characters] if given.speaker_characters else []
        lost = command(*words)
        transcripts = read_mlf(self.corpus / "words.mlf")
        case = best_case(Counter(label.name for name in transcripts for label in transcripts[name]), known)
        return lost if case == "keep" else command(*words, "--case", case)

    def lists(self) -> int:
        from recipes.own.lists import write_lists

        return write_lists(self.arguments, self.corpus, self.out, CONFIG)

    @cached_property
    def facts(self):
        from recipes.own.data import Facts

        return Facts.read(self.out / "data.json")

    @property
    def feature_dim(self) -> int:
        """Values of a frame of the network's features."""
        from features import FeatureConfig
        from readers.config.hcopy import read_hcopy_config

        return FeatureConfig.from_hcopy(read_hcopy_config(self.out / "config" / "channels.hcopy")).dim

    @property
    def sizes(self):
        from recipes.own.sizes import Sizes

        return Sizes(self.facts.frames)

    def features(self) -> int:
        from recipes.an4.prepare import WARPS, warp_name, write_warped_config
        from recipes.own.lists import write_feature_lists

        config = self.out / "config"
        lost = 0
        for static, with_mean in (("channels.hcopy", "mean.hcopy"), ("static.hcopy", "cepstra.hcopy")):
            lost |= command(
                "hcopy", "-C", config / static, "-S", self.out / "lists" / "speech.list",
                "--speech-mean", config / with_mean, "-j", self.workers,
            )  # fmt: skip
        for warp in WARPS:
            write_warped_config(config / "mean.hcopy", warp, config / f"{warp_name(warp)}.hcopy")
        for path in sorted((self.out / "lists").glob("*.hcopy.list")):
            name = path.name.partition(".")[0]
            lost |= command(
                "hcopy", "-C", config / f"{name}.hcopy", "-S", path,
                "--report", self.out / "reports" / f"features.{name}", "-j", self.workers,
            )  # fmt: skip
        for name, report in write_feature_lists(self.out):
            lost |= account(self.out, report, f"lists.{name}")
        return lost

    def flatstart(self) -> int:
        return command(
            "flatstart", "--features", self.out / "lists" / "cepstra.scp", "--words", self.labels("known"),
            "--dict", self.dictionary, "--silence", SILENCE, "-j", self.workers, "--out", self.flat,
        )  # fmt: skip

    def take_alignments(self) -> int:
        from readers.htk.dictionary import read_dictionary
        from recipes.own.alignments import write_alignment

        report = write_alignment(
            self.arguments.alignments, read_dictionary(self.dictionary), self.arguments.silence.split(","),
            self.out / "lists" / "known.scp", self.flat,
        )  # fmt: skip
        return account(self.out, report, "alignments")

    def tie(self) -> int:
        return command(
            "tie", "--alignment", self.flat / "states.mlf", "--state-list", self.flat / "states.list",
            "--features", self.out / "lists" / "train.cepstra.scp", "--silence", SILENCE,
            "--threshold", self.sizes.threshold, "--min-frames", self.sizes.min_frames,
            "--transition-power", TRANSITION_POWER, "--out", self.hmms,
        )  # fmt: skip

    def lm(self) -> int:
        text, lost = self.arguments.text, 0
        if self.given_lm is not None:
            with atomic_write(self.lm_file("given")) as file:
                file.write(read_bytes(self.given_lm))
        for name, source in (("tune-trained", "train"), ("trained", "known")):
            lost |= command(
                "lm", "estimate", "--text", self.out / "lm" / f"{source}.txt", "--order", ORDER, "--method", "kn",
                "--vocabulary", self.out / "lm" / "vocabulary", *(["--unk", "<UNK>"] if text else []),
                "-o", self.lm_file(name),
            )  # fmt: skip
        return lost

    def graph(self) -> int:
        lost = 0
        for name in ("tune-trained", *self.language_models):
            lost |= command(
                "graph", "--mmf", self.hmms / "hmmdefs", "--hmm-list", self.hmms / "tiedlist",
                "--trees", self.hmms / "trees", "--hmms", self.out / "graph" / "tables", "--dict", self.dictionary,
                "--state-list", self.senones, "--silence", SILENCE, "--drop-missing", "--lm", self.lm_file(name),
                "--out", self.graph_folder(name),
            )  # fmt: skip
        return lost

    def train(self, first: bool) -> int:
        from readers.htk.frame_labels import read_state_list

        sizes = [*self.sizes.arguments(first), f"InputDim={WINDOW * self.feature_dim}"]
        return command(
            "cntk", *self.cntk_arguments(first, [f"NumSenones={len(read_state_list(self.senones))}", *sizes])
        )

    def cntk_arguments(self, first: bool, sizes: list[str]) -> list[str]:
        labels = self.hmms / "states.mlf" if first else self.copies / "training.mlf"
        scp = self.out / "lists" / f"{'train' if first else 'training'}.scp"
        return [
            f"configFile={CONFIG / 'own.cntk'}", f"ExpDir={self.out}", f"WorkDir={self.home(first)}",
            f"TrainList={scp}", f"SenoneLabels={labels}", f"SenoneList={self.senones}", f"randomSeed={self.seed}",
            *sizes, *self.overrides,
        ]  # fmt: skip

    def align(self) -> int:
        return command(
            "argon", "-graph", self.graph_folder("trained") / "graph.dg", "-alignmlf", self.labels("known"),
            "--dict", self.dictionary, "-am", self.model(first=True), "-dnn_window_size", WINDOW,
            "-cntkmap", self.graph_folder("trained") / "cntkmap", "-infiles", self.out / "lists" / "known.scp",
            "--output-node", LOG_POSTERIORS, "-detailed-alignment", "-outmlf", self.aligned,
        )  # fmt: skip

    def make_copies(self) -> int:
        from recipes.background import write_background
        from recipes.own.data import FRAMES_PER_SECOND
        from recipes.own.lists import write_copy_source, write_training_lists

        source, config = self.copies / "source.scp", self.out / "config" / "plain.hcopy"
        write_copy_source(self.out, source)
        background = write_background(
            self.out / "background", self.facts.frames / FRAMES_PER_SECOND, self.facts.rate, self.seed
        )
        lost = command(
            "augment", source, "--speed", ",".join(SPEEDS), "--copies-only", "--states", self.aligned,
            "-C", config, "--out", self.copies, "-j", self.workers,
        ) | command(
            "hcopy", "-C", config, "-S", self.copies / "hcopy.list",
            "--report", self.out / "reports" / "features.copies", "-j", self.workers,
        ) | command(
            "hcopy", "-C", config, "-S", background,
            "--report", self.out / "reports" / "features.background", "-j", self.workers,
        )  # fmt: skip
        report = write_training_lists(self.out, self.aligned, self.copies, SILENCE)
        return lost | account(self.out, report, "lists.training")

    @property
    def evaluation(self) -> Evaluation:
        from recipes.an4.grid import GRID

        models = language_models(self.language_models, self.lm_file, self.graph_folder)
        return Evaluation(self.out, self.home(False), self.model(first=False), WINDOW, models, GRID, self.workers)

    def pack(self) -> int:
        name = "trained" if self.given_lm is None else "given"
        return command(
            "pack", self.out, "--recipe", "own" if name == "trained" else "own-given",
            "--rate", self.facts.rate, "--window", WINDOW, "--name", "own",
            *(["--language", self.arguments.language] if self.arguments.language else []), "-o", self.bundle,
        ) | command(
            "calibrate", self.bundle, self.labels("dev"), "--test", self.labels("test"),
            "--list", self.out / "lists" / "plain.hcopy.list", "-o", self.bundle,
        )  # fmt: skip

    def closing(self) -> None:
        if is_done(self.out, "pack"):
            print("bundle:", self.bundle)
        print("pictures:", f"{self.model(first=False)}.png", *self.evaluation.pictures)
        self.evaluation.print_results()

    @property
    def bundle(self) -> Path:
        return self.out / "own.argo"

    def home(self, first: bool) -> Path:
        return self.out / ("first" if first else "final")

    def model(self, first: bool) -> Path:
        return self.home(first) / "model" / "own.dnn"

    def labels(self, name: str) -> Path:
        """Return the transcripts of a set; known: of training and development set."""
        return self.out / "labels" / f"{name}.words.mlf"

    def lm_file(self, name: str) -> Path:
        return self.out / "lm" / f"{name}.arpa"

    def graph_folder(self, name: str) -> Path:
        return self.out / "graph" / name
