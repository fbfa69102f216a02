"""The options of decoding lists and streams: those of CNTK book 6.1.3, whose flags have one dash, and additions."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from decoder.g2p.guessing import CompletedDictionary
from decoder.graph.options import TUNED_OPTIONS, GraphOptions, SilenceTopology
from decoder.recognizer.jobs.options import file_name
from decoder.search.hotword_options import HotwordOptions
from decoder.search.options import SearchOptions
from readers.audio.options import AudioFileOptions
from readers.common.text import is_count
from readers.config.options import Options, group, like, option
from readers.errors import ConfigError

TUNING = (
    "costs are -ln probabilities, and acoustic costs are multiplied by {acweight}; beams are differences of costs;\n"
    "options that are not given have the values stored in {graph} ({save_defaults}), or else those in parentheses"
)
FOR_DEFAULTS = ("graph", "save_defaults", "am", "lm")
NOT_FOR_ALIGNMENT = ("lm", "lm_collection", "lattice_prefix", "partial", "hotwords")
NOT_FOR_STREAMS = (*("infiles", "scores", "alignmlf", "detailed_alignment", "lattice_prefix", "report", "partial"),)
TRUTH = {"true": True, "t": True, "1": True, "false": False, "f": False, "0": False}


def truth(text: str) -> bool:
    """Return the value of a switch that is followed by one; raises ConfigError."""
    if text.lower() not in TRUTH:
        raise ConfigError(f"{text!r}; expected true or false")
    return TRUTH[text.lower()]


def stored(name: str, help: str, flag: str = "", **others: Any) -> Any:
    """Declare an option of the search that has no default of its own, because the graph may carry one."""
    return like(SearchOptions, name, None, flags=(flag,) if flag else (), help=help, **others)


@dataclass(frozen=True, kw_only=True)
class CompilingOptions(Options):
    """What a graph is compiled from."""

    infsm: Path | None = option(
        None, "acceptor to compile, AT&T text, plain or .gz", flag="-infsm", heading="graph compilation (6.1.3.1)"
    )
    lookahead_file: Path | None = option(
        None, "look-ahead score of each word, if the acceptor has them", flag="-lookahead-file"
    )
    transition_file: Path | None = option(None, "lines `[state] ln_self ln_forward`", flag="-transition-file")
    precompile: bool = option(
        False, "compile {infsm} into {graph}", flag="-precompile", parse=truth, metavar="true|false"
    )


@dataclass(frozen=True, kw_only=True)
class DecodeDictionary(CompletedDictionary):
    """The dictionary of transcripts and of output symbols, and a model that guesses pronunciations."""

    dict: Path | None = option(None, "dictionary with the [output symbols] of {precompile} and the words of {alignmlf}")
    g2p: Path | None = option(
        None,
        "guess the pronunciations of words of {alignmlf} that {dict} lacks, with a model of `argonaut g2p train`, and "
        "write them to a dictionary for review", metavar="MODEL",
    )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class AcousticOptions(Options):
    """Where the acoustic scores come from: a network on feature files or audio, or stored log-likelihoods.

    Raises
    ------
    OptionFault
        For a value out of range, and for options that contradict each other.
    """

    infiles: Path | None = option(
        None, "list of feature files, one per line: FILE or NAME=FILE[first,last]", flag="-infiles", metavar="LIST",
        heading="inputs (6.1.3.2)",
    )  # fmt: skip
    features: Path | None = option(None, "HCopy configuration; {infiles} lists audio", metavar="CONFIG")
    ivectors: Path | None = option(None, "i-vectors of the utterances, from argonaut ivector extract", metavar="SCP")
    ivector_model: Path | None = option(None, "model that estimates i-vectors from the audio of {features}")
    reading: AudioFileOptions = group(AudioFileOptions)
    am: Path | None = option(None, "acoustic model; NAME.onnx: an ONNX model", flag="-am")
    output_node: str = option(
        "", "node of the log-likelihoods (ScaledLogLikelihood; ONNX: the only output)", metavar="NODE"
    )
    priors: Path | None = option(None, "priors for an ONNX model whose outputs are ln posteriors")
    scores: str = option(
        "",
        "scaled log-likelihoods in place of {am} and {infiles}: a Kaldi archive, or a list (.scp) of archives or of "
        "HTK files, as action=write writes them", metavar="FILE",
    )  # fmt: skip
    frame_shift: float | None = option(
        None, "frame shift of {scores} (archives: 10; HTK files: from their headers)", unit="ms", least=0.0001,
        metavar="MS",
    )  # fmt: skip
    cntkmap: Path | None = option(None, "lines `[state] index-of-network-output`", flag="-cntkmap")
    window: int | None = option(
        None, "frames stacked into one input (as the model was trained; 11 for a model without a record)",
        flag="-dnn_window_size",
    )  # fmt: skip
    ignore_mismatch: bool = option(
        False, "score features or audio that are not those of the model's training", flag="--ignore-feature-mismatch",
    )  # fmt: skip
    chunks: tuple[int, int] | None = option(
        None, "score chunks of N frames with AHEAD future frames, as in training (default: whole utterances)",
        separator=":", metavar="N:AHEAD",
    )  # fmt: skip
    int8: bool = option(
        False, "multiply the weights of {am} as 8-bit integers: faster on processors with AVX-512 VNNI, with slightly "
        "different scores",
    )  # fmt: skip

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.chunks is not None:
            size, ahead = (*self.chunks, 0)[:2] if self.chunks else (0, 0)
            text = ":".join(map(str, self.chunks))
            fine = len(self.chunks) <= 2 and size >= 1 and ahead >= 0
            expected = "expected frames per chunk and frames of look-ahead, such as 40:20"
            self.require("chunks", fine, f"is {text!r}; {expected}")
            object.__setattr__(self, "chunks", (size, ahead))
        if self.scores:
            for declared, _ in self.changed():
                alone = declared.name not in ("scores", "frame_shift", "cntkmap", "window")
                self.require(declared.name, not alone, "is given with {scores}; expected only one of them")
            return
        if self.features:
            is_fine = self.ivectors is None
            expected = "expected {ivector_model}, or feature files"
            self.require("ivectors", is_fine, f"is given with {{features}}; {expected}")
            return
        is_fine = self.ivector_model is None
        expected = "expected {ivectors} with feature files"
        self.require("ivector_model", is_fine, f"is given without {{features}}; {expected}")
        for declared, _ in self.reading.changed():
            self.require(declared.name, False, "is given without {features}; expected it only for audio")


@dataclass(frozen=True, kw_only=True)
class DecodeOutputOptions(Options):
    """What is written.

    Raises
    ------
    OptionFault
        If two outputs are the same file.
    """

    outmlf: Path | None = option(None, "MLF for the recognised words", flag="-outmlf", heading="outputs (6.1.3.3)")
    detailed_alignment: bool = option(
        False, "write a line for each HMM state to {outmlf}, with phone and word", flag="-detailed-alignment",
        parse=truth, metavar="true|false",
    )  # fmt: skip
    lattice_prefix: str = option(
        "", "lattices PREFIX1.lat, ... and their list PREFIX.index", flag="-lattice-prefix", metavar="PREFIX"
    )
    words: Path | None = option(None, "words with times: .ctm, .json, .srt, .vtt, ...")
    report: Path | None = option(None, "file that lists what failed (default: OUTMLF.report)")
    partial: bool = option(
        True, "if no path reaches a final state, write nothing (default: the best unfinished path)", cntk=None
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        fine = self.words is None or self.words != self.outmlf
        self.require("words", fine, f"is {self.words}, as {{outmlf}}; expected two files")

    @property
    def index_path(self) -> Path | None:
        """The index file, which maps lattice files to utterances; None without lattices."""
        return Path(f"{self.lattice_prefix}.index") if self.lattice_prefix else None

    @property
    def report_path(self) -> Path:
        """The file that lists what failed."""
        return self.report or Path(f"{self.outmlf or self.lattice_prefix or self.words}.report")


@dataclass(frozen=True, kw_only=True)
class DecodeSearchOptions(Options):
    """How is searched; options that are None have the values stored in the graph, or else those of SearchOptions."""

    acweight: float | None = stored(
        "acweight", "acoustic scale, 1/s of HVite -s; usually 0.1 to 2 (0.0667; when aligning: 1)", flag="-acweight",
        heading=f"search (6.1.3.4)\n{TUNING}",
    )  # fmt: skip
    beam: float | None = stored(
        "beam", "beam: tokens whose cost exceeds the best by more than X are pruned (15; when aligning: none)",
        flag="-beam",
    )  # fmt: skip
    max_tokens: int | None = stored("max_tokens", "maximum number of tokens per frame (5000)", flag="-max-tokens")
    word_end_beam_frac: float | None = stored(
        "word_end_beam_frac", "beam after a word arc, as a fraction of {beam} (0.33333)", flag="-word_end_beam_frac",
    )  # fmt: skip
    sil_cost: float | None = stored("sil_cost", "cost of entering silence (1.0)", flag="-sil-cost")
    silence: tuple[str, ...] | None = like(
        SearchOptions, "silence", help="silence models, separated by commas (default: those of <s>, sil and sp)",
        separator=",", metavar="NAMES",
    )  # fmt: skip
    widenings: int | None = stored(
        "widenings",
        "if no path reaches the end, try again up to N times, each time with twice the beam and twice the tokens (2; "
        "when aligning: 3; in streams: 0)",
    )
    lm_scale: float | None = stored("lm_scale", "language model scale (1)")
    word_penalty: float | None = stored("word_penalty", "cost added per word; larger values give fewer words (0)")
    slack_decay: float | None = stored(
        "slack_decay",
        "decay per frame of the extra beam for language model costs above the look-ahead (0.8)",
    )
    lookahead_sums: bool | None = stored(
        "lookahead_sums", "look ahead by the sum of the probabilities of the words in reach, not by the best (no)"
    )
    lm_lookahead: bool = like(
        SearchOptions, "lm_lookahead", help="use only the look-ahead scores of the graph", in_blocks=False
    )
    new_sentence: bool = option(
        True, "an utterance is one sentence (default: another may begin where one has ended)", cntk=None
    )
    hotwords: HotwordOptions = group(HotwordOptions)
    lattice_beam: float = like(
        SearchOptions, "lattice_beam", 10.0, help="most by which the cost of paths in lattices exceeds the best"
    )
    save_defaults: bool = option(
        False,
        "store the search options of this command line in {graph}, as the defaults of later commands, and exit; {am} "
        "and {lm} are noted as the models with which they were tuned",
    )
    threads: int | None = option(None, "number of cores to use (default: all)", least=1)


@dataclass(frozen=True, kw_only=True)
class StreamOptions(Options):
    """A stream: its audio, and where utterances end.

    Raises
    ------
    OptionFault
        For a value out of range, and for options of a stream without one.
    """

    stream: str = option(
        "", "recognise audio while it arrives; AUDIO is a file, a named pipe, or - for standard input", metavar="AUDIO",
        heading="streaming (S: seconds)",
    )  # fmt: skip
    json: bool = option(False, "print JSON, one object per line, with partial results")
    pause: float = option(0.8, "silence that ends an utterance", unit="seconds", above=0, metavar="S")
    longest: float = option(30.0, "maximum length of an utterance", unit="seconds", most=math.inf, metavar="S")
    no_speech: float = option(
        5.0, "restart the search if no word is found for this long", unit="seconds", most=math.inf, metavar="S"
    )
    whole: bool = option(False, "treat the whole input as one utterance")
    block: int = option(10, "frames per block of computation", unit="frames", least=1)
    running_mean: str = option(
        "100:600",
        "for _Z without SPEECHMEAN: subtract the mean of the last MEMORY frames, and from the first START frames their "
        "own mean; or `whole`: the mean of the whole input", metavar="START:MEMORY",
    )  # fmt: skip

    def __post_init__(self) -> None:
        super().__post_init__()
        for declared, _ in self.changed():
            self.require(declared.name, bool(self.stream), "is given without {stream}; expected both")
        start, _, memory = self.running_mean.partition(":")
        fine = self.running_mean == "whole" or (is_count(start) and is_count(memory or start))
        expected = "expected START:MEMORY in frames, such as 100:600, or whole"
        self.require("running_mean", fine, f"is {self.running_mean}; {expected}")


@dataclass(frozen=True, kw_only=True)
class TranscriptOptions(Options):
    """Transcripts to align, and how their graphs are made."""

    alignmlf: Path | None = option(
        None,
        "transcripts (MLF, Kaldi's text, trn, or one line per line of {infiles}) in words of {dict}, or in phones "
        "without {dict}; {graph} must be in an output directory of `argonaut graph`", flag="-alignmlf",
        heading="forced alignment (6.1.3.4)",
    )  # fmt: skip
    level: Literal["word", "phone", "state"] | None = option(
        None, "level of the labels to write (word; with {detailed_alignment}: state)"
    )
    optional_silence: bool | None = like(
        GraphOptions, "optional_silence",
        help="allow silence between labels and at the ends, or do not (default: with {dict})",
    )  # fmt: skip
    silence_probability: float | None = like(
        GraphOptions, "silence_probability", help="probability of such a silence (default: silence has no cost)",
    )  # fmt: skip
    silence_topology: SilenceTopology | None = like(
        GraphOptions, "silence_topology", None,
        help="transitions between silence states (default: as recorded beside {graph})",
    )  # fmt: skip
    pronunciation_scale: float = like(GraphOptions, "pronunciation_scale")


@dataclass(frozen=True, kw_only=True)
class DecodeOptions(Options):
    """A graph to compile or to decode with, language models, the inputs, the outputs, and how is searched.

    Raises
    ------
    OptionFault
        For a value out of range, and for options that contradict each other.
    """

    compiling: CompilingOptions = group(CompilingOptions)
    graph: Path = option(help="compiled graph: written with {precompile}, else read", flag="-graph", parse=file_name)
    verify: bool = option(
        True,
        "do not compare the checksums of {graph} and of mapped language models when they are first opened",
        flag="--no-checksums",
        cntk=None,
    )
    state_map: Path | None = option(None, "lines `model state state ...` (default: from the names of the states)")
    dictionary: DecodeDictionary = group(DecodeDictionary)
    acoustic: AcousticOptions = group(AcousticOptions)
    lm: Path | None = option(None, "ARPA language model (default: only the costs of the graph)", flag="-lm")
    lm_collection: Path | None = option(
        None, "interpolated models: lines `ARPA-file weight`; weights sum to 1", flag="-lm-collection"
    )
    output: DecodeOutputOptions = group(DecodeOutputOptions)
    search: DecodeSearchOptions = group(DecodeSearchOptions)
    streaming: StreamOptions = group(StreamOptions)
    transcripts: TranscriptOptions = group(TranscriptOptions)

    def __post_init__(self) -> None:
        super().__post_init__()
        fine = self.lm is None or self.lm_collection is None
        self.require("lm", fine, "is given with {lm_collection}; expected only one of them")
        is_aligning = self.transcripts.alignmlf is not None
        fine = is_aligning or self.dictionary.g2p is None
        expected = "expected transcripts whose words it guesses"
        self.require("g2p", fine, f"is given without {{alignmlf}}; {expected}")
        if is_aligning:
            self._refuse(NOT_FOR_ALIGNMENT, "is given with {alignmlf}; expected it only when decoding")
            fine = len(self.search.silence or ()) < 2
            self.require("silence", fine, "names several models; expected one with {alignmlf}")
            fine = not self.output.detailed_alignment or self.transcripts.level in (None, "state")
            self.require("level", fine, f"is {self.transcripts.level} with {{detailed_alignment}}; expected state")
        if self.streaming.stream:
            fine = not self.compiling.precompile
            self.require("stream", fine, "is given with {precompile}; expected only one of them")
            text = "is given with {stream}; expected it only without"
            self._refuse(NOT_FOR_STREAMS, text)
            self.require("widenings", not self.search.widenings, text)
            for name in ("am", "cntkmap", "features"):
                self.require(name, bool(getattr(self.acoustic, name)), "is missing; expected it with {stream}")
        if self.search.save_defaults:
            expected = "expected only search options, {am} and {lm}"
            other_options = {declared.name for declared, _ in self.changed()} - {*FOR_DEFAULTS, *TUNED_OPTIONS}
            self._refuse(sorted(other_options), f"is given with {{save_defaults}}; {expected}")

    def _refuse(self, names: Iterable[str], text: str) -> None:
        """Raise OptionFault for the first of some options that is given."""
        changed = {declared.name: value for declared, value in self.changed()}
        for name in names:
            self.require(name, name not in changed, text)

    @property
    def is_list(self) -> bool:
        """Whether a list of utterances is decoded or aligned."""
        return not (self.streaming.stream or self.compiling.precompile or self.search.save_defaults)

    @property
    def widenings(self) -> int:
        """How often an utterance without a path to the end is tried again, at most."""
        default = 3 if self.transcripts.alignmlf else 0 if self.streaming.stream else SearchOptions.widenings
        return default if self.search.widenings is None else self.search.widenings

    @property
    def tuned(self) -> dict[str, float]:
        """The options of the search that are given, of those that a graph may carry."""
        values = {name: getattr(self.search, name) for name in TUNED_OPTIONS}
        return {name: value for name, value in values.items() if value is not None}

    @property
    def inputs(self) -> list[Path | None]:
        """The files that are read, which no output may replace."""
        acoustic = self.acoustic
        read = [acoustic.infiles, acoustic.features, acoustic.am, acoustic.cntkmap, self.graph, self.lm]
        read += [self.dictionary.dict, self.dictionary.g2p, self.transcripts.alignmlf, self.search.hotwords.hotwords]
        return [*read, *(Path(name) for name in (acoustic.scores, self.streaming.stream) if name)]


def flag_of(name: str) -> str:
    """Return the flag of an option, as reports and notes name it."""
    return DecodeOptions.declaration(name).flag
