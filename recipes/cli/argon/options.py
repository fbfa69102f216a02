"""The options of `argon`: those of CNTK book 6.1.3, and additions."""

import argparse

from readers.errors import ConfigError
from recipes.cli.argon.sharding import add_process_options
from recipes.cli.dictionaries import add_dictionary_options, add_guess_option
from recipes.cli.hotwords import add_hotword_options
from recipes.cli.parser import Parser
from recipes.cli.raw_audio import add_audio_options

DECODING = {"widenings": 2}  # defaults; the others are those of the graph or of SearchOptions
STREAMING = {"widenings": 0}
ALIGNING = {"acweight": 1.0, "beam": None, "sil_cost": 1.0, "widenings": 3}
RUNNING_MEAN = "100:600"  # frames
MAX_WIDENINGS = 20


# Options of the CNTK book, in its spelling.
BOOK_OPTIONS = (
    "infsm", "lookahead-file", "transition-file", "precompile", "graph", "infiles", "lm", "lm-collection", "sil-cost",
    "am", "cntkmap", "dnn_window_size", "outmlf", "detailed-alignment", "lattice-prefix", "acweight", "beam",
    "max-tokens", "word_end_beam_frac", "alignmlf",
)  # fmt: skip


def spelled(name: str) -> str:
    """Return the option that sets an attribute of the arguments, such as -lm-collection or --frame-shift."""
    book = {option.replace("-", "_"): f"-{option}" for option in BOOK_OPTIONS}
    return book.get(name.replace("-", "_"), f"--{name.replace('_', '-')}")


class _Parser(Parser):
    help_option = "-help"

    def place(self) -> str:
        return "command line"


def truth(text: str) -> bool:
    if text.lower() not in ("true", "false", "t", "f", "1", "0"):
        raise argparse.ArgumentTypeError(f"{text!r}; expected true or false")
    return text.lower() in ("true", "t", "1")


def chunk_sizes(text: str) -> tuple[int, int]:
    try:
        size, _, ahead = text.partition(":")
        chunks = int(size), int(ahead or 0)
    except ValueError:
        chunks = 0, 0
    if chunks[0] < 1 or chunks[1] < 0:
        raise argparse.ArgumentTypeError(f"{text!r}; expected frames per chunk and frames of look-ahead, such as 40:20")
    return chunks


def make_parser(description: str) -> argparse.ArgumentParser:
    parser = _Parser(
        prog="argon",
        usage="argon -graph FILE [options]",
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        add_help=False,
        allow_abbrev=False,
    )
    parser.add_argument("-h", "-help", action="help", help="show this help and exit")
    parser.add_argument("--version", action="store_true", help="print the version and exit")
    parser.add_argument("-v", "--verbose", action="count", default=0, help="print more details")

    compiling = parser.add_argument_group("graph compilation (6.1.3.1)")
    add(compiling, "infsm", "FILE", "acceptor to compile, AT&T text, plain or .gz")
    add(compiling, "lookahead-file", "FILE", "look-ahead score of each word, if the acceptor has them")
    add(compiling, "transition-file", "FILE", "lines `[state] ln_self ln_forward`")
    add_switch(compiling, "precompile", "compile -infsm into -graph")
    add(compiling, "graph", "FILE", "compiled graph: written with -precompile, else read")
    compiling.add_argument(
        "--no-checksums",
        dest="verify",
        action="store_false",
        help="do not compare the checksums of -graph and of mapped language models",
    )
    compiling.add_argument(
        "--state-map",
        default="",
        metavar="FILE",
        help="lines `model state state ...` (default: from the names of the states)",
    )
    compiling.add_argument(
        "--dict",
        default="",
        metavar="FILE",
        help="dictionary with the [output symbols] of -precompile and the words of -alignmlf",
    )
    add_dictionary_options(compiling)
    add_guess_option(compiling, "words of -alignmlf")

    inputs = parser.add_argument_group("inputs (6.1.3.2)")
    add(inputs, "infiles", "LIST", "list of feature files, one per line: FILE or NAME=FILE[first,last]")
    inputs.add_argument("--features", default="", metavar="CONFIG", help="HCopy configuration; -infiles lists audio")
    inputs.add_argument(
        "--ivectors", default="", metavar="SCP", help="i-vectors of the utterances, from argonaut ivector extract"
    )
    inputs.add_argument(
        "--ivector-model",
        default="",
        metavar="FILE",
        help="model that estimates i-vectors from the audio of --features",
    )
    add_audio_options(inputs)
    add(inputs, "lm", "FILE", "ARPA language model (default: only the costs of the graph)")
    add(inputs, "lm-collection", "FILE", "interpolated models: lines `ARPA-file weight`; weights sum to 1")
    add_number(inputs, "sil-cost", "cost of entering silence (1.0)")
    inputs.add_argument(
        "--silence", metavar="NAMES", help="silence models, separated by commas (default: those of <s>, sil and sp)"
    )
    add(inputs, "am", "FILE", "acoustic model; NAME.onnx: an ONNX model")
    inputs.add_argument(
        "--output-node",
        default="",
        metavar="NODE",
        help="node of the log-likelihoods (ScaledLogLikelihood; ONNX: the only output)",
    )
    inputs.add_argument(
        "--priors", default="", metavar="FILE", help="priors for an ONNX model whose outputs are ln posteriors"
    )
    inputs.add_argument(
        "--scores",
        default="",
        metavar="FILE",
        help="scaled log-likelihoods in place of -am and -infiles: a Kaldi archive, or a list (.scp) of archives or of "
        "HTK files, as action=write writes them",
    )
    inputs.add_argument(
        "--frame-shift",
        type=float,
        metavar="MS",
        help="frame shift of --scores (archives: 10; HTK files: from their headers)",
    )
    add(inputs, "cntkmap", "FILE", "lines `[state] index-of-network-output`")
    inputs.add_argument(
        "-dnn_window_size",
        type=int,
        metavar="N",
        help="frames stacked into one input (as the model was trained; 11 for a model without a record)",
    )
    inputs.add_argument(
        "--ignore-feature-mismatch",
        action="store_true",
        help="score features or audio that are not those of the model's training",
    )
    inputs.add_argument(
        "--chunks",
        type=chunk_sizes,
        metavar="N:AHEAD",
        help="score chunks of N frames with AHEAD future frames, as in training (default: whole utterances)",
    )

    inputs.add_argument(
        "--int8",
        action="store_true",
        help="multiply the weights of -am as 8-bit integers: faster on processors with AVX-512 VNNI, with slightly "
        "different scores",
    )

    outputs = parser.add_argument_group("outputs (6.1.3.3)")
    add(outputs, "outmlf", "FILE", "MLF for the recognised words")
    add_switch(outputs, "detailed-alignment", "write a line for each HMM state to -outmlf, with phone and word")
    add(outputs, "lattice-prefix", "PREFIX", "lattices PREFIX1.lat, ... and their list PREFIX.index")
    outputs.add_argument("--words", default="", metavar="FILE", help="words with times: .ctm, .json, .srt, .vtt, ...")
    outputs.add_argument("--report", metavar="FILE", help="file that lists what failed (default: OUTMLF.report)")
    outputs.add_argument(
        "--no-partial",
        action="store_true",
        help="if no path reaches a final state, write nothing (default: the best unfinished path)",
    )
    outputs.add_argument("--partial", dest="no_partial", action="store_false", help=argparse.SUPPRESS)  # until 0.1.0

    searching = parser.add_argument_group(
        "search (6.1.3.4)",
        "costs are -ln probabilities, and acoustic costs are multiplied by -acweight; beams are differences of costs;\n"
        "options that are not given have the values stored in -graph (--save-defaults), or else those in parentheses",
    )
    add_number(searching, "acweight", "acoustic scale, 1/s of HVite -s; usually 0.1 to 2 (0.0667; when aligning: 1)")
    add_number(
        searching,
        "beam",
        "beam: tokens whose cost exceeds the best by more than X are pruned (15; when aligning: none)",
    )
    searching.add_argument("-max-tokens", type=int, metavar="N", help="maximum number of tokens per frame (20000)")
    add_number(searching, "word_end_beam_frac", "beam after a word arc, as a fraction of -beam (0.33333)")
    searching.add_argument(
        "--widenings",
        type=int,
        metavar="N",
        help="if no path reaches the end, try again up to N times, each time with twice the beam and twice the tokens "
        "(2; when aligning: 3; in streams: 0)",
    )
    searching.add_argument("--lm-scale", type=float, metavar="X", help="language model scale (1)")
    searching.add_argument(
        "--word-penalty", type=float, metavar="X", help="cost added per word; larger values give fewer words (0)"
    )
    searching.add_argument(
        "--slack-decay", type=float, metavar="X",
        help="decay per frame of the extra beam for language model costs above the look-ahead (0.8)",
    )  # fmt: skip
    searching.add_argument(
        "--no-lm-lookahead",
        dest="lm_lookahead",
        action="store_false",
        help="use only the look-ahead scores of the graph",
    )
    searching.add_argument(
        "--no-new-sentence",
        dest="new_sentence",
        action="store_false",
        help="an utterance is one sentence (default: another may begin where one has ended)",
    )
    add_hotword_options(searching)
    searching.add_argument(
        "--lattice-beam",
        type=float,
        default=10.0,
        metavar="X",
        help="lattices contain paths whose cost exceeds the best by at most X (10)",
    )
    searching.add_argument(
        "--save-defaults",
        action="store_true",
        help="store the search options of this command line in -graph, as the defaults of later commands, and exit; "
        "-am and -lm are noted as the models with which they were tuned",
    )
    add_streaming(parser.add_argument_group("streaming (S: seconds)"))
    aligning = parser.add_argument_group("forced alignment (6.1.3.4)")
    add(
        aligning,
        "alignmlf",
        "FILE",
        "transcripts (MLF, Kaldi's text, trn, or one line per line of -infiles) in words of --dict, or in phones "
        "without --dict; -graph must be in an output directory of `argonaut graph`",
    )
    aligning.add_argument(
        "--level",
        choices=("word", "phone", "state"),
        help="level of the labels to write (word; with -detailed-alignment: state)",
    )
    between = aligning.add_mutually_exclusive_group()
    between.add_argument(
        "--optional-silence",
        action="store_true",
        default=None,
        help="allow silence between labels and at the ends (default: with --dict)",
    )
    between.add_argument("--no-optional-silence", dest="optional_silence", action="store_false", help="do not allow it")
    aligning.add_argument(
        "--sil-prob", type=float, metavar="P", help="probability of such a silence (default: silence has no cost)"
    )
    aligning.add_argument(
        "--sil-topology",
        choices=("left-to-right", "any-order"),
        help="transitions between silence states (default: as recorded beside -graph)",
    )
    aligning.add_argument(
        "--pron-scale", type=float, default=1.0, metavar="X", help="scale of ln pronunciation probabilities (1)"
    )
    searching.add_argument("--threads", type=int, metavar="N", help="number of cores to use (default: all)")
    add_process_options(parser.add_argument_group("machines"))
    return parser


def add_streaming(group) -> None:
    """Add the options of streaming: the audio source and the ends of utterances."""
    group.add_argument(
        "--stream",
        default="",
        metavar="AUDIO",
        help="recognise audio while it arrives; AUDIO is a file, a named pipe, or - for standard input",
    )
    group.add_argument("--json", action="store_true", help="print JSON, one object per line, with partial results")
    group.add_argument("--pause", type=float, default=0.8, metavar="S", help="silence that ends an utterance (0.8)")
    group.add_argument("--longest", type=float, default=30.0, metavar="S", help="maximum length of an utterance (30)")
    group.add_argument(
        "--no-speech",
        type=float,
        default=5.0,
        metavar="S",
        help="restart the search if no word is found for this long (5)",
    )
    group.add_argument("--whole", action="store_true", help="treat the whole input as one utterance")
    group.add_argument("--block", type=int, default=10, metavar="N", help="frames per block of computation (10)")
    group.add_argument(
        "--running-mean",
        default=RUNNING_MEAN,
        metavar="START:MEMORY",
        help="for _Z without SPEECHMEAN: subtract the mean of the last MEMORY frames, and from the first START frames "
        "their own mean; or "
        "`whole`: the mean of the whole input (100:600)",
    )


FOR_STREAMS = ("json", "pause", "longest", "no_speech", "whole", "block", "running_mean")


def refuse_streaming(arguments: argparse.Namespace, parser: argparse.ArgumentParser) -> None:
    """Raise ConfigError for an option that requires --stream."""
    for name in FOR_STREAMS:
        if getattr(arguments, name) != parser.get_default(name):
            raise ConfigError(f"command line: {spelled(name)} without --stream; expected it only with --stream")


def add(group, name: str, metavar: str, text: str, default=""):
    """Add an option of the CNTK book."""
    group.add_argument(f"-{name}", type=type(default), default=default, metavar=metavar, help=text)


def add_number(group, name: str, text: str):
    """Add a numeric option of the CNTK book without a default of its own, because the graph may carry one."""
    group.add_argument(f"-{name}", type=float, metavar="X", help=text)


def add_switch(group, name: str, text: str):
    """Add a flag that may be followed by true or false."""
    group.add_argument(f"-{name}", type=truth, nargs="?", const=True, default=False, help=text, metavar="true|false")


def canonical(argv: list[str], parser: argparse.ArgumentParser) -> list[str]:
    """Rewrite `--graph`, `--dnn-window-size`, ... to the spelling of the CNTK book: `-graph`, `-dnn_window_size`."""
    book = [flag for flag in parser._option_string_actions if len(flag) > 2 and not flag.startswith("--")]
    known = {f"-{flag.replace('_', '-')}": flag for flag in book}
    result = []
    for argument in argv:
        flag, equals, value = argument.partition("=")
        result.append(known.get(flag, flag) + equals + value)
    return result
