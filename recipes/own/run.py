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

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from decoder import g2p, gaussians, grammars, graph, tying
from decoder.alignment.dictionary.job import HTK, AlignedDictionary, DictionaryProbabilitiesOptions
from decoder.g2p.import_job import ImportDictionary
from features import augmentation
from readers.common.environment import available_cores
from readers.common.files import write_content
from readers.common.report import Log, silent
from readers.common.text import read_bytes
from readers.corpora import directory
from recipes.cli.console import show_note
from recipes.job import RecipeResult, run_silently
from recipes.own.networks import CONFIG, SILENCE, CrossEntropy, Ctc, LatticeFree, Network
from recipes.own.options import OwnOptions
from recipes.own.second_pass import SecondPass
from recipes.own.sets import read_names
from recipes.own.sizes import ENOUGH_HOURS, SPEEDS, TUNING_MINUTES, Sizes, TdnnfSizes
from recipes.own.speeds import speed_lines
from recipes.stage_settings import file_settings, joint_checksum, text_checksum
from recipes.stages import Stage, account, call, is_done
from recipes.steps import align, calibrate, estimate, extract, make_bundle, mix, mixture_weights

if TYPE_CHECKING:
    from recipes.own.data import Facts

TRANSITION_POWER = 0.3  # compensates for a small acoustic weight
# The node for alignment: without the division by priors, silence keeps the frames beside words (RESULTS.md).
LOG_POSTERIORS = "HLast"
ORDER, TEXT_ORDER = 4, 3  # of the language model of transcripts, and with that of a text


class Recipe:
    """The stages, and the places of their files, which are all below `out`.

    texts: the language models of the transcripts, and the sentences that each knows: train, or known, with the
    development set as well.
    """

    texts: ClassVar = {"tune-trained": "train", "trained": "known"}

    def __init__(self, options: OwnOptions):
        from readers.corpora.importing import is_imported

        dictionary = options.dictionary
        files = (options.data, dictionary.dict, dictionary.g2p, options.alignments, options.words, options.lm)
        for path in filter(None, (*files, options.text)):
            path.stat()
        self.options = options
        self.data = options.data
        self.out = options.out
        self.seed = options.seed
        self.overrides = options.overrides
        self.workers = options.workers or available_cores()
        self.corpus = self.data if is_imported(self.data) else self.out / "corpus"
        self.dictionary = self.out / "words.dict"
        self.hmms = self.out / "hmms"
        self.senones = self.out / "hmms" / "senones.list"
        self.flat = self.out / "flat"
        self.aligned = self.out / "align" / "states.mlf"
        self.spoken = self.out / "align" / "spoken" / HTK  # the dictionary with probabilities
        self.copies = self.out / "copies"
        self.first = CrossEntropy(self, first=True)
        self.second_pass = SecondPass(self)
        self.language_models = {"trained": "LM trained on the transcripts"}
        if options.lm is not None:
            self.language_models |= {"given": options.lm.name}

    def stages(self) -> list[Stage]:
        options = self.options
        dictionary = self.options.dictionary
        second = {"second_pass": True} if options.second_pass else {}
        decoded = ("decode", "second-pass") if options.second_pass else ("decode",)
        reading = {"kind": options.kind, "speaker_characters": options.speaker_characters, "data": str(self.data)}
        reading |= file_settings(dictionary.dict, options.words, options.alignments)
        silences = {"silence": ",".join(options.silence)} if options.alignments else {}
        lists: dict[str, object] = {"dict_format": dictionary.dict_format, "strip_stress": dictionary.strip_stress}
        lists |= {name: getattr(options, name) for name in ("channel", "rate", "min_minutes")} | silences
        lists |= {name: read_names(getattr(options, name)) for name in ("dev_speakers", "test_speakers")}
        lists |= {"text_words": options.text_words} if options.text else {}
        lists |= {"lm": options.lm is not None}
        lists |= file_settings(dictionary.dict, dictionary.map_phones, dictionary.g2p, options.text, options.alignments)
        return [
            Stage("import", "recordings, words and speakers of the corpus", self.import_corpus, (), reading,
                  inputs=self.source_settings),
            Stage("lists", "sets, dictionary, transcripts", self.lists, (),
                  lists | file_settings(*sorted(CONFIG.glob("*.hcopy"))), inputs=self.corpus_settings),
            Stage("features", "mel channels for the network, of the training set also with warped frequency; cepstra",
                  self.features, (), {"tuning_minutes": TUNING_MINUTES}, inputs=self.list_settings),
            Stage("alignments", "the given alignments", self.take_alignments, ("lists", "features"),
                  silences | file_settings(options.alignments)) if options.alignments else
            Stage("flatstart", "Gaussian models of phones, from nothing, and their alignment", self.flatstart,
                  ("lists", "features")),
            Stage("tie", "triphones with states tied by decision trees", self.tie,
                  ("features", "alignments" if options.alignments else "flatstart")),
            Stage("lm", "language models of the transcripts, with and without the development set", self.lm,
                  ("lists",), file_settings(options.lm)),
            Stage("graph", "a cross-word triphone graph for the language model of the transcripts",
                  lambda: self.make_graphs("trained"), ("lists", "tie", "lm")),
            Stage("train-first", "a network, to align the training set", self.first.train, ("features", "tie"),
                  self.first.settings(), self.first.model.parent),
            Stage("align", "alignment by this network, and how often each pronunciation is in it", self.align,
                  ("features", "graph", "train-first"), {"pronunciations": f"{HTK}, training set"}),
            Stage("copies", "copies of the training set at other speeds, background without speech", self.make_copies,
                  ("features", "align"), {"speeds": ",".join(SPEEDS)}),
            Stage("chain", "graphs for the final network; for lattice-free MMI also tied biphones",
                  self.prepare_final, ("lists", "features", "tie", "lm", "copies"),
                  inputs=lambda: {"final": self.final.kind}),
            Stage("train", "the network on this alignment and the copies", lambda: self.final.train(),
                  ("features", "tie", "align", "copies", "chain"), inputs=lambda: self.final.settings(),
                  work=self.out / "final" / "model"),
            Stage("tune", "search options, on the development set", lambda: self.final.evaluation.tune(),
                  ("features", "lm", "graph", "chain", "train")),
            Stage("decode", "words and lattices of the test set", lambda: self.final.evaluation.decode(),
                  ("features", "lm", "graph", "chain", "train", "tune")),
            *(self.second_pass.stages() if options.second_pass else []),
            Stage("score", "word error rate", self.score, ("lists", *decoded), second, closes=True),
            Stage("pack", "a bundle: everything that recognition needs, in one file", self.pack,
                  ("lists", "features", "lm", "graph", "chain", "train", "tune", *decoded),
                  {"language": options.language} | second),
        ]  # fmt: skip

    @property
    def final(self) -> Network:
        """The final network."""
        criterion = self.options.final or ("lfmmi" if self.facts.hours >= ENOUGH_HOURS else "ce")
        if criterion == "ce":
            return CrossEntropy(self, first=False)
        return LatticeFree(self) if criterion == "lfmmi" else Ctc(self)

    def source_settings(self) -> dict[str, str]:
        """Return the files that stage import reads."""
        from recipes.own.data import corpus_files

        return {"checksum of the corpus": joint_checksum(corpus_files(self.data, self.out))}

    def corpus_settings(self) -> dict[str, str]:
        """Return the files of others that stage lists reads."""
        names = (directory.AUDIO, directory.WORDS, directory.SPEAKERS, directory.RECORDINGS)
        files = [path for path in map(self.corpus.joinpath, names) if path.is_file()]
        return file_settings(*files) | self.audio_settings

    def list_settings(self) -> dict[str, str]:
        """Return what stage features reads of stage lists; of the transcripts it takes only the names."""
        from readers.htk.mlf import read_mlf

        files = (*sorted((self.out / "lists").glob("*.hcopy.list")), self.out / "lists" / "speech.list")
        configs = (self.out / "config" / f"{name}.hcopy" for name in ("channels", "static"))
        sets = {
            f"checksum of set {name}": text_checksum(read_mlf(self.labels(name))) for name in ("dev", "test", "known")
        }
        return file_settings(*files, *configs) | sets | self.audio_settings

    @cached_property
    def audio_settings(self) -> dict[str, str]:
        from readers.htk.scp import read_scp

        entries = read_scp(self.corpus / directory.AUDIO, channels=True)
        return {"checksum of the audio": joint_checksum({f"{entry.path}": Path(entry.path) for entry in entries})}

    def import_corpus(self) -> int:
        from readers.corpora.importing import guess_kind
        from readers.dictionaries.case import best_case
        from readers.htk.mlf import read_mlf

        if self.corpus == self.data:
            print(f"{self.data}: imported before")
            return 0
        settings = self.options
        dictionary = self.options.dictionary
        kind = settings.kind or guess_kind(self.data)
        dictionary_words = {entry.word for entry in dictionary.read(show_note)}
        words = ImportDictionary(dict=dictionary.dict, dict_format=dictionary.dict_format)
        options = g2p.ImportOptions(
            kind=kind, source=self.data, out=self.corpus, dictionary=words,
            speaker_characters=settings.speaker_characters,
            words=settings.words or settings.alignments or Path("words.mlf") if kind == "htk" else None,
        )  # fmt: skip
        lost = call("import", options)
        transcripts = read_mlf(self.corpus / "words.mlf")
        case = best_case(Counter(label.name for name in transcripts for label in transcripts[name]), dictionary_words)
        return lost if case == "keep" else call("import", replace(options, case=case))

    def lists(self) -> int:
        from recipes.own.lists import write_lists

        return write_lists(self.options, self.corpus, self.out, CONFIG, knows_dev="known" in self.texts.values())

    @cached_property
    def facts(self) -> "Facts":
        from recipes.own.data import Facts

        return Facts.read(self.out / "data.json")

    @property
    def feature_dim(self) -> int:
        """Values of a frame of the network's features."""
        from features import FeatureConfig
        from readers.config.hcopy import read_hcopy_config

        return FeatureConfig.from_hcopy(read_hcopy_config(self.out / "config" / "channels.hcopy")).dim

    @property
    def sizes(self) -> Sizes:
        return Sizes(self.facts.frames)

    @property
    def tdnnf_sizes(self) -> TdnnfSizes:
        return TdnnfSizes(self.facts.frames)

    def features(self) -> int:
        from recipes.an4.prepare import WARPS, warp_name, write_warped_config
        from recipes.own.lists import write_feature_lists, write_tuning_list

        config = self.out / "config"
        lost = 0
        for static, with_mean in (("channels.hcopy", "mean.hcopy"), ("static.hcopy", "cepstra.hcopy")):
            speech = self.out / "lists" / "speech.list"
            lost |= extract(config / static, speech, self.workers, speech_mean=config / with_mean)
        for warp in WARPS:
            write_warped_config(config / "mean.hcopy", warp, config / f"{warp_name(warp)}.hcopy")
        for path in sorted((self.out / "lists").glob("*.hcopy.list")):
            name = path.name.partition(".")[0]
            losses = self.out / "reports" / f"features.{name}"
            lost |= extract(config / f"{name}.hcopy", path, self.workers, report=losses)
        for name, report in write_feature_lists(self.out):
            lost |= account(self.out, report, f"lists.{name}")
        write_tuning_list(self.out, TUNING_MINUTES)
        return lost

    def flatstart(self) -> int:
        options = gaussians.FlatStartOptions(
            features=self.out / "lists" / "cepstra.scp", words=self.labels("known"),
            dictionary=gaussians.SpokenDictionary(dict=self.dictionary),
            training=gaussians.FlatStartSettings(silence=SILENCE), out=self.flat,
        )  # fmt: skip
        return call("flatstart", options, workers=self.workers)

    def take_alignments(self) -> int:
        from readers.htk.dictionary import read_dictionary
        from recipes.own.alignments import write_alignment

        assert self.options.alignments is not None  # else there is a flat start
        report = write_alignment(
            self.options.alignments, read_dictionary(self.dictionary), self.options.silence,
            self.out / "lists" / "known.scp", self.flat,
        )  # fmt: skip
        return account(self.out, report, "alignments")

    def tie(self) -> int:
        options = tying.TieOptions(
            alignment=self.flat / "states.mlf", files=tying.StateFiles(state_list=self.flat / "states.list"),
            features=self.out / "lists" / "train.cepstra.scp", silence=SILENCE,
            growing=tying.TreeOptions(threshold=self.sizes.threshold, min_frames=self.sizes.min_frames),
            transition_power=TRANSITION_POWER, out=self.hmms,
        )  # fmt: skip
        return call("tie", options)

    @property
    def graph_names(self) -> list[str]:
        """The language models of which there are graphs for decoding."""
        return list(dict.fromkeys((*self.texts, *self.language_models)))

    def lm(self) -> int:
        lost = 0
        if self.options.lm is not None:
            write_content(self.lm_file("given"), read_bytes(self.options.lm))
        folder = self.out / "lm"
        vocabulary = self.out / "lm" / "vocabulary"
        sources = {name: folder / f"{text}.txt" for name, text in self.texts.items()}
        if self.options.text is None:
            for name, text in sources.items():
                lost |= estimate(text, self.lm_file(name), order=ORDER, vocabulary=vocabulary)
            return lost
        models = {path: path.with_suffix(".unmixed.arpa") for path in (folder / "text.txt", *sources.values())}
        for text, model in models.items():
            lost |= estimate(text, model, order=TEXT_ORDER, vocabulary=vocabulary, unk="<UNK>")
        prose = models[folder / "text.txt"]
        # Of the models that do not know the development set.
        weights = mixture_weights([models[folder / "train.txt"], prose], folder / "dev.txt")
        for name, text in sources.items():
            lost |= mix([models[text], prose], weights, self.lm_file(name))
        return lost

    def make_graphs(self, *names: str) -> int:
        """Make the graphs of the first network for language models."""
        return self.make_triphone_graphs(names, self.dictionary, self.graph_folder)

    def prepare_final(self) -> int:
        """Make what the final network needs; note the settings that the user replaces and no network has."""
        taken = {*self.first.overrides(), *self.final.overrides()}
        for setting in self.overrides:
            if setting not in taken:
                show_note(f"--set {setting}: no network of this run has it")
        return self.final.prepare()

    def make_triphone_graphs(self, names: Iterable[str], dictionary: Path, folder: Callable[[str], Path]) -> int:
        """Make graphs of tied triphones for language models, each in its folder."""
        lost = 0
        for name in names:
            options = grammars.GraphFiles(
                mmf=(self.hmms / "hmmdefs",), hmm_list=self.hmms / "tiedlist", trees=self.hmms / "trees",
                hmms=self.out / "graph" / "tables", dictionary=grammars.GraphDictionary(dict=dictionary),
                state_list=self.senones, graph=graph.GraphOptions(silence=SILENCE, drop_missing=True),
                lm=self.lm_file(name), out=folder(name),
            )  # fmt: skip
            lost |= call("graph", options)
        return lost

    def align(self) -> int:
        lost = align(
            self.graph_folder("trained"), self.first.model, self.first.window, self.aligned,
            infiles=self.out / "lists" / "known.scp", words=self.labels("known"), dictionary=self.dictionary,
            output_node=LOG_POSTERIORS,
        )  # fmt: skip
        options = DictionaryProbabilitiesOptions(
            dictionary=AlignedDictionary(dict=self.dictionary), alignments=(self.aligned,),
            infiles=self.out / "lists" / "train.scp", output=self.spoken.parent,
        )  # fmt: skip
        call("g2p", options)  # pronunciations that the dictionary lacks are listed; no utterance is lost
        return lost

    def make_copies(self) -> int:
        from recipes.background import write_background
        from recipes.own.data import FRAMES_PER_SECOND
        from recipes.own.lists import write_copy_source, write_training_lists

        source = self.copies / "source.scp"
        config = self.out / "config" / "plain.hcopy"
        write_copy_source(self.out, source)
        seconds = self.facts.frames / FRAMES_PER_SECOND
        background = write_background(self.out / "background", seconds, self.facts.rate, self.seed)
        options = augmentation.AugmentOptions(
            source=source, speeds=tuple(map(float, SPEEDS)), copies_only=True, states=self.aligned, config=config,
            out=self.copies, **self.copy_options(source),
        )  # fmt: skip
        lost = call("augment", options, workers=self.workers)
        for listed, name in ((self.copies / "hcopy.list", "copies"), (background, "background")):
            lost |= extract(config, listed, self.workers, report=self.out / "reports" / f"features.{name}")
        prefixes = [*(f"sp{speed}-" for speed in SPEEDS), *(f"world{1 + copy}-" for copy in range(options.world))]
        report = write_training_lists(self.out, self.aligned, self.copies, prefixes, SILENCE)
        return lost | account(self.out, report, "lists.training")

    def copy_options(self, source: Path) -> dict[str, Any]:
        """Return options of further copies of the recordings in a list."""
        return {}

    def score(self) -> int:
        lost = self.final.evaluation.score()
        return lost | self.second_pass.evaluation.score() if self.options.second_pass else lost

    def pack(self) -> int:
        final = self.final
        layout = final.layout if self.options.lm is None else final.given_layout
        lost = make_bundle(
            self.out, self.bundle, layout, rate=self.facts.rate, window=final.window, language=self.options.language,
            rescored=self.options.second_pass,
        )  # fmt: skip
        return lost | calibrate(
            self.bundle, words=self.labels("dev"), test=self.labels("test"), list=self.out / "lists/plain.hcopy.list"
        )

    def result(self) -> RecipeResult:
        result = self.final.evaluation.result(self.bundle if is_done(self.out, "pack") else None)
        if self.options.second_pass:
            result = self.second_pass.join(result)
        return replace(result, lines=(*speed_lines(self), *result.lines))

    @property
    def bundle(self) -> Path:
        return self.out / "own.argo"

    def labels(self, name: str) -> Path:
        """Return the transcripts of a set; known: of training and development set."""
        return self.out / "labels" / f"{name}.words.mlf"

    def lm_file(self, name: str) -> Path:
        return self.out / "lm" / f"{name}.arpa"

    def graph_folder(self, name: str) -> Path:
        return self.out / "graph" / name


RECIPE = OwnOptions, Recipe


def recipe_own(options: OwnOptions, *, log: Log = silent) -> RecipeResult:
    """Train a recogniser on a corpus, and measure its error rate on speakers that were held out.

    An interrupted run continues where it stopped when the function is called again.  Worker processes are spawned, so
    a script that calls this needs `if __name__ == "__main__":`.

    Parameters
    ----------
    options : OwnOptions
    log : callable
        Receives a line when a stage begins or ends, and about what is lost.

    Returns
    -------
    RecipeResult
        Its `bundle` is the recogniser, and `figures` has the error rate for each language model.

    Raises
    ------
    ArgonautError, OSError
        For a corpus that cannot be used, and for a stage that can do nothing.

    Examples
    --------
    ``recipe_own(OwnOptions(data="data", dictionary=OwnDictionary(dict="words.dict"), out="exp")).figures[0].value``
    """
    return run_silently(Recipe, options, log)
