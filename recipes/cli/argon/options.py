"""The options of `argon`, as 6.1.3 has them and with what was added."""

import argparse

from readers.errors import ConfigError

DECODING = {"acweight": 0.0667, "beam": 15.0}  # where the command line says nothing
ALIGNING = {"acweight": 1.0, "beam": None}


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> None:
        raise ConfigError(f"command line: {message}; argon -help shows the options")


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
        raise argparse.ArgumentTypeError(f"{text!r}; expected frames of a chunk and frames ahead, 40:20 for instance")
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
    parser.add_argument("-h", "-help", action="help", help="this text")
    parser.add_argument("-v", "--verbose", action="count", default=0, help="tell more")

    compiling = parser.add_argument_group("graph compilation (6.1.3.1)")
    add(compiling, "infsm", "FILE", "acceptor as AT&T text, plain or gzipped, to compile")
    add(compiling, "lookahead-file", "FILE", "look-ahead score of each word, if the acceptor holds them")
    add(compiling, "transition-file", "FILE", "lines [state] ln_self ln_forward")
    add_switch(compiling, "precompile", "compile -infsm into -graph")
    add(compiling, "graph", "FILE", "compiled graph, written with -precompile, else read")
    compiling.add_argument(
        "--state-map", default="", metavar="FILE", help="lines `model state state ...` (default: by the states' names)"
    )
    compiling.add_argument(
        "--dict",
        default="",
        metavar="FILE",
        help="dictionary: whose [output symbols] are written; of -alignmlf's words",
    )

    inputs = parser.add_argument_group("inputs (6.1.3.2)")
    add(inputs, "infiles", "LIST", "feature files to decode, one a line, or name=file[first,last]")
    inputs.add_argument("--features", default="", metavar="CONFIG", help="-infiles lists audio; HCopy configuration")
    add(inputs, "lm", "FILE", "ARPA language model (default: the graph's own costs alone)")
    add(inputs, "lm-collection", "FILE", "several at once: lines `ARPA-file weight`, weights that sum to 1")
    add(inputs, "sil-cost", "X", "cost charged on entering silence (1.0)", 1.0)
    inputs.add_argument(
        "--silence", metavar="NAMES", help="silence models, comma between (default: those of <s>, sil and sp)"
    )
    add(inputs, "am", "FILE", "network model; NAME.onnx: an ONNX model")
    inputs.add_argument(
        "--output-node",
        default="",
        metavar="NODE",
        help="its log-likelihoods (ScaledLogLikelihood; of an ONNX model the only output)",
    )
    inputs.add_argument(
        "--priors", default="", metavar="FILE", help="of the outputs of an ONNX model, if these are ln posteriors"
    )
    inputs.add_argument(
        "--scores",
        default="",
        metavar="FILE",
        help="log-likelihoods in place of -am and -infiles: a Kaldi archive, or a list, .scp",
    )
    inputs.add_argument(
        "--frame-shift", type=float, default=10.0, metavar="MS", help="of --scores, which do not tell (10)"
    )
    add(inputs, "cntkmap", "FILE", "lines [state] index-of-network-output")
    add(inputs, "dnn_window_size", "N", "frames stacked into one input (11)", 11)
    inputs.add_argument(
        "--chunks",
        type=chunk_sizes,
        metavar="N:AHEAD",
        help="score in chunks, as a network was trained (whole utterances)",
    )

    outputs = parser.add_argument_group("outputs (6.1.3.3)")
    add(outputs, "outmlf", "FILE", "recognised words as MLF")
    add_switch(outputs, "detailed-alignment", "a line per HMM state in it, phone and word beside")
    add(outputs, "lattice-prefix", "PREFIX", "lattices PREFIX1.lat, ...; PREFIX.index tells which is which")
    outputs.add_argument("--words", default="", metavar="FILE", help="words with times: .ctm, .json, .srt, .vtt, ...")
    outputs.add_argument("--report", metavar="FILE", help="where losses are named (default: OUTMLF.report)")
    outputs.add_argument("--partial", action="store_true", help="write the best unfinished path where none is final")

    searching = parser.add_argument_group(
        "search (6.1.3.4)", "costs are -ln of probabilities, the acoustic ones times -acweight; beams are between costs"
    )
    add_number(searching, "acweight", "of acoustic log-likelihoods, HVite's 1/s; useful 0.1 to 2 (0.0667; aligning 1)")
    add_number(searching, "beam", "cost beyond the best token's where tokens end (15; aligning: none)")
    add(searching, "max-tokens", "N", "tokens kept per frame (20000)", 20000)
    add(searching, "word_end_beam_frac", "X", "beam after a word arc, as part of the beam (0.33333)", 0.33333)
    searching.add_argument("--lm-scale", type=float, default=1.0, metavar="X", help="weight of the language model (1)")
    searching.add_argument(
        "--word-penalty", type=float, default=0.0, metavar="X", help="cost added per word; more: fewer words (0)"
    )
    searching.add_argument(
        "--slack-decay", type=float, default=0.8, metavar="X",
        help="part of a word's unforeseen cost that is still forgiven a frame later (0.8)",
    )  # fmt: skip
    searching.add_argument(
        "--no-lm-lookahead", dest="lm_lookahead", action="store_false", help="let the graph alone look ahead"
    )
    searching.add_argument(
        "--lattice-beam", type=float, default=10.0, metavar="X", help="beyond the best path, kept in lattices (10)"
    )
    add_streaming(parser.add_argument_group("streaming; S are seconds"))
    aligning = parser.add_argument_group("forced alignment (6.1.3.4)")
    add(aligning, "alignmlf", "FILE", "transcripts: words of --dict, else phones; -graph tells where the tables are")
    aligning.add_argument(
        "--level", choices=("word", "phone", "state"), help="labels of -outmlf (word; -detailed-alignment: state)"
    )
    between = aligning.add_mutually_exclusive_group()
    between.add_argument(
        "--optional-silence",
        action="store_true",
        default=None,
        help="silence may stand between labels and at the ends (default: with --dict)",
    )
    between.add_argument("--no-optional-silence", dest="optional_silence", action="store_false", help="... may not")
    aligning.add_argument("--sil-prob", type=float, metavar="P", help="probability of such a silence (default: free)")
    aligning.add_argument(
        "--sil-topology",
        choices=("left-to-right", "any-order"),
        help="of silence's states (default: as argonaut graph was told, for -graph)",
    )
    aligning.add_argument(
        "--pron-scale", type=float, default=1.0, metavar="X", help="weight of pronunciation probabilities"
    )
    searching.add_argument("--threads", type=int, metavar="N", help="(default: one per core)")
    return parser


def add_streaming(group) -> None:
    """Audio that goes on and on, and the ends of its utterances."""
    group.add_argument(
        "--stream",
        default="",
        metavar="AUDIO",
        help="words as they are found: a file, a named pipe, - for standard input",
    )
    group.add_argument("--rate", type=int, metavar="HZ", help="of bare 16-bit samples in a pipe (default: WAV tells)")
    group.add_argument("--json", action="store_true", help="an object a line, partial results too")
    group.add_argument("--pause", type=float, default=0.8, metavar="S", help="silence that ends an utterance (0.8)")
    group.add_argument("--longest", type=float, default=30.0, metavar="S", help="an utterance ends by then (30)")
    group.add_argument(
        "--no-speech", type=float, default=5.0, metavar="S", help="without words the search begins anew by then (5)"
    )
    group.add_argument("--whole", action="store_true", help="one utterance, pauses or not")
    group.add_argument("--block", type=int, default=10, metavar="N", help="frames that are worked on together (10)")
    group.add_argument(
        "--running-mean",
        default="100:600",
        metavar="START:MEMORY",
        help="for _Z: the mean of MEMORY frames, the first one of START; or: whole (100:600)",
    )


FOR_STREAMS = ("rate", "json", "pause", "longest", "no_speech", "whole", "block", "running_mean")


def refuse_streaming(arguments: argparse.Namespace, parser: argparse.ArgumentParser) -> None:
    """Raise ConfigError for an option that only a stream has a use for."""
    for name in FOR_STREAMS:
        if getattr(arguments, name) != parser.get_default(name):
            flag = name.replace("_", "-")
            raise ConfigError(f"command line: --{flag} without --stream; expected it for a stream alone")


def add(group, name: str, metavar: str, text: str, default=""):
    """A flag of the book."""
    group.add_argument(f"-{name}", type=type(default), default=default, metavar=metavar, help=text)


def add_number(group, name: str, text: str):
    """A flag of the book whose default depends on what is to be done."""
    group.add_argument(f"-{name}", type=float, metavar="X", help=text)


def add_switch(group, name: str, text: str):
    """A flag that stands alone or with true or false."""
    group.add_argument(f"-{name}", type=truth, nargs="?", const=True, default=False, help=text, metavar="true|false")


def canonical(argv: list[str], parser: argparse.ArgumentParser) -> list[str]:
    """The arguments with flags as the parser knows them: one dash or two, hyphens or underscores all mean the same."""
    known = {flag.lstrip("-").replace("_", "-"): flag for flag in parser._option_string_actions}
    result = []
    for argument in argv:
        flag, equals, value = argument.partition("=")
        if flag.startswith("-"):
            flag = known.get(flag.lstrip("-").replace("_", "-"), flag)
        result.append(flag + equals + value)
    return result
