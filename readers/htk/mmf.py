"""HTK model definitions as text (MMF files): ~o ~h and the shared parts ~s ~t ~p ~m ~u ~v ~w.

Keywords are enclosed in <> and case-insensitive; blanks and line ends only separate.  A shared part must be defined
before it is referred to, in the same file or an earlier one.  `~p` shares the mixture of a stream.
Not supported: tied-mixture and discrete streams, full covariances, durations, binary files.
Source: HTK Book 3.4, chapter 7, in particular section 7.10 (the HMM definition language).
"""

import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from readers.common.report import Figures
from readers.common.text import is_closed, is_count, is_number, read_lines, to_numbers, unescape
from readers.errors import FormatError
from readers.htk.hmm_set import (
    MACRO_KINDS,
    GaussianComponent,
    Hmm,
    HmmOptions,
    HmmSet,
    HmmState,
    MacroVector,
    SharedPart,
    StreamMixture,
    TransitionMatrix,
)

TOLERANCE = 0.01  # deviation from 1 of a sum of probabilities, which are written with few digits
MAX_STATES = 1000  # per model; more means a damaged file
LONG_LINE = 60  # characters
BASE_KINDS = (
    *("WAVEFORM", "LPC", "LPREFC", "LPCEPSTRA", "LPDELCEP", "IREFC", "MFCC", "FBANK", "MELSPEC"),
    *("USER", "DISCRETE", "PLP", "ANON"),
)
DURATIONS = ("<NULLD>", "<POISSOND>", "<GAMMAD>", "<GEND>")
COVARIANCES = ("<DIAGC>", "<INVDIAGC>", "<FULLC>", "<LLTC>", "<XFORMC>")
# A quote that is not closed takes the rest of the line; looking for its end again and again would take quadratic time.
_TOKEN = re.compile(r"""<[^<>\s]*>|"(?:[^"\\]|\\.)*(?:"|.*)|'(?:[^'\\]|\\.)*(?:'|.*)|~[A-Za-z]|[^\s<>"'~]+|[<>~]""")
_NOT_TAKEN = {
    "<TMIX>": "a tied mixture",
    "<DPROB>": "discrete output probabilities",
    "<INVCOVAR>": "a full covariance",
    "<LLTCOVAR>": "a full covariance",
    "<XFORM>": "a transform",
    "<DURATION>": "durations",
    "~d": "durations",
    "~i": "a full covariance",
    "~x": "a transform",
}


def read_mmf(paths: str | Path | Sequence[str | Path]) -> HmmSet:
    """Read the models of one or several MMF files.

    Parameters
    ----------
    paths : path or sequence of path
        Files, read in this order.  A file that begins with <BEGINHMM> holds one model, named after the file.

    Returns
    -------
    HmmSet

    Raises
    ------
    FormatError
        With file and line, for a violation of the language, sizes that do not match, an undefined or repeated part, and
        probabilities that do not sum to 1.

    References
    ----------
    HTK Book 3.4, section 7.10.
    """
    hmm_set = HmmSet()
    for path in [paths] if isinstance(paths, (str, os.PathLike)) else paths:
        _Parser(path, hmm_set).parse()
    return hmm_set


class _Parser:
    """Recursive descent over the tokens of one file; each method parses the part after which it is named."""

    def __init__(self, path: str | Path, hmm_set: HmmSet):
        self.path = path
        self.set = hmm_set
        self.at = 0
        self.tokens: list[str] = []
        self.lines: list[int] = []
        for number, line in enumerate(read_lines(path), 1):
            if any(mark in line for mark in "<>\"'~"):
                tokens = [f"<{t[1:-1].upper()}>" if t[0] == "<" else t for t in _TOKEN.findall(line)]
            elif len(line) > LONG_LINE:  # numbers: one token until they are parsed, which is faster for large sets
                tokens = [line.strip()] if line.strip() else []
            else:
                tokens = line.split()
            self.tokens += tokens
            self.lines += [number] * len(tokens)
        self.tokens.append("")  # the end
        self.lines.append(self.lines[-1] if self.lines else 1)

    def fault(self, found: str, expected: str, at: int | None = None) -> FormatError:
        line = self.lines[min(self.at if at is None else at, len(self.lines) - 1)]
        return FormatError(f"{self.path}:{line}: {found}; expected {expected}")

    def shown(self, at: int | None = None) -> str:
        token = self.tokens[self.at if at is None else at]
        return repr(token[:40]) if token else "the end of the file"

    @property
    def next(self) -> str:
        return self.tokens[self.at]

    def take(self) -> str:
        self.at += 1
        return self.tokens[self.at - 1]

    def require(self, keyword: str) -> None:
        if self.next != keyword:
            raise self.fault(self.shown(), keyword)
        self.at += 1

    def count(self, what: str, low: int = 1, high: int | None = None) -> int:
        token = self.next
        if not is_count(token) or int(token) < low or (high is not None and int(token) > high):
            limits = f"{low} to {high}" if high is not None else f"at least {low}"
            raise self.fault(f"{what} {self.shown()}", f"a whole number, {limits}")
        self.at += 1
        return int(token)

    def number(self, what: str) -> float:
        if not is_number(self.next) or not np.isfinite(float(self.next)):
            raise self.fault(f"{what} {self.shown()}", "a number")
        return float(self.take())

    def numbers(self, count: int, what: str) -> npt.NDArray[np.float64]:
        """Parse `count` numbers, which may span lines; return (count,) float64."""
        fields: list[str] = []
        while len(fields) < count:
            token = self.next
            if not token or token[0] in "<>~\"'":
                raise self.fault(f"{what}: {self.shown()} as value {len(fields) + 1}", f"{count} numbers")
            fields += token.split()
            self.at += 1
        if len(fields) > count:  # keep the rest of the line
            self.at -= 1
            self.tokens[self.at] = " ".join(fields[count:])
        try:
            values = np.array(to_numbers(fields[:count]), dtype=np.float64)
        except ValueError:
            values = np.array([np.nan])
        if not np.all(np.isfinite(values)):
            at = next(i for i, field in enumerate(fields) if not is_number(field) or not np.isfinite(float(field)))
            raise self.fault(f"{what}: {fields[at][:40]!r} as value {at + 1}", f"{count} numbers", self.at - 1)
        return values

    def name(self, kind: str) -> str:
        token = self.next
        if not token or token[0] in "<>~" or (token[0] in "\"'" and (len(token) < 3 or not is_closed(token))):
            raise self.fault(f"{self.shown()} after ~{kind}", f"the name of a {MACRO_KINDS[kind]}")
        self.at += 1
        return unescape(token[1:-1]) if token[0] in "\"'" else unescape(token)

    def reference(self, kind: str) -> Any:
        """Return the shared part to which `~kind "name"` refers."""
        begin = self.at
        self.at += 1
        name = self.name(kind)
        part = self.set.macros[kind].get(name)
        if part is None:
            raise self.fault(
                f"~{kind} {name!r} is not defined", f"the {MACRO_KINDS[kind]} defined before it is used", begin
            )
        return part

    def refuse_other_kinds(self) -> None:
        if self.next in _NOT_TAKEN:
            raise self.fault(
                f"{self.next} ({_NOT_TAKEN[self.next]}), which is not supported", "mixtures of diagonal Gaussians"
            )

    # Definitions

    def parse(self) -> None:
        if self.next == "<BEGINHMM>":
            self.define("h", Path(self.path).name, self.at)
        if self.next[:1] == ":":
            raise self.fault("a binary file", "text; HHEd without -B writes it")
        while self.next:
            begin = self.at
            token = self.take()
            if token == "~o":
                self.options()
            elif token[0] == "~" and token[1:] in MACRO_KINDS:
                self.define(token[1:], self.name(token[1:]), begin)
            else:
                self.at = begin
                self.refuse_other_kinds()
                kinds = " ".join(f"~{kind}" for kind in ("o", *MACRO_KINDS))
                raise self.fault(self.shown(), f"a definition: one of {kinds}")

    def define(self, kind: str, name: str, begin: int) -> None:
        if name in self.set.macros[kind]:
            raise self.fault(f"~{kind} {name!r} is defined twice", "each name once", begin)
        bodies: dict[str, Callable[[str], Hmm | SharedPart]] = {
            "h": lambda model: self.hmm(model, f"{self.path}:{self.lines[begin]}"),
            "s": self.state_body,
            "t": self.transitions_body,
            "p": self.stream_body,
            "m": self.component_body,
            "u": lambda macro: self.vector_body("<MEAN>", macro),
            "v": lambda macro: self.vector_body("<VARIANCE>", macro),
            "w": lambda macro: self.vector_body("<SWEIGHTS>", macro),
        }
        self.set.macros[kind][name] = bodies[kind](name)

    def options(self) -> None:
        """Parse global options up to the first token that is not one."""
        parsed: dict[str, Any] = {}
        key: str
        value: object
        while self.next[:1] == "<" and self.next not in ("<BEGINHMM>", "<NUMSTATES>"):
            begin = self.at
            token = self.take()
            if token == "<STREAMINFO>":
                num_streams = self.count("number of streams", 1, 50)
                key = "stream_widths"
                value = tuple(self.count("stream width") for _ in range(num_streams))
            elif token == "<VECSIZE>":
                key = "vector_size"
                value = self.count("vector size")
            elif token == "<HMMSETID>":
                key = "name"
                value = unescape(self.take().strip("\"'"))
            elif token in DURATIONS:
                key = "duration"
                value = token[1:-1]
            elif token in COVARIANCES:
                key = "covariance"
                value = token[1:-1]
            elif token[1:-1].split("_")[0] in BASE_KINDS:
                key = "kind"
                value = token[1:-1]
            else:
                raise self.fault(
                    f"option {token}", "<STREAMINFO>, <VECSIZE>, a kind such as <MFCC_D_A_0>, <NULLD>, <DIAGC>", begin
                )
            earlier = getattr(self.set.options, key) or parsed.get(key)
            if earlier and earlier != value:
                raise self.fault(f"option {token} gives {value} after {earlier}", "one value for the whole set", begin)
            parsed[key] = value
        for key, bad, good in (("duration", DURATIONS[1:], "<NULLD>"), ("covariance", COVARIANCES[1:], "<DIAGC>")):
            if f"<{parsed.get(key)}>" in bad:
                raise self.fault(f"option <{parsed[key]}>, which is not supported", good, begin)
        self.set.options = HmmOptions(**{**vars(self.set.options), **parsed})
        options = self.set.options
        if options.vector_size and options.stream_widths and sum(options.stream_widths) != options.vector_size:
            raise self.fault(f"streams of {options.stream_widths} values", f"{options.vector_size} in all", begin)

    # Models and their parts

    def hmm(self, name: str, where: str) -> Hmm:
        self.require("<BEGINHMM>")
        self.options()
        self.require("<NUMSTATES>")
        begin = self.at
        num_states = self.count("number of states", 3, MAX_STATES)
        states: dict[int, HmmState] = {}  # by place
        while self.next == "<STATE>":
            self.at += 1
            index = self.count("state", 2, num_states - 1)
            if index in states:
                raise self.fault(f"state {index} of model {name!r} is defined twice", "each state once", self.at - 1)
            states[index] = self.reference("s") if self.next == "~s" else self.state_body(None)
        for index in range(2, num_states):
            if index not in states:
                raise self.fault(f"{self.shown()}, but no state {index} of model {name!r}", "<STATE>")
        begin = self.at
        transitions = self.reference("t") if self.next == "~t" else self.transitions_body(None)
        if transitions.matrix.shape[0] != num_states:
            raise self.fault(
                f"transitions of {transitions.matrix.shape[0]} states in model {name!r} of {num_states}",
                "as many as the model has",
                begin,
            )
        self.refuse_other_kinds()
        self.require("<ENDHMM>")
        return Hmm(name, tuple(states[number] for number in range(2, num_states)), transitions, where)

    def state_body(self, macro: str | None) -> HmmState:
        num_streams = len(self.set.options.stream_widths) or 1
        num_mixes = [1] * num_streams
        if self.next == "<NUMMIXES>":
            self.at += 1
            num_mixes = [self.count("number of components") for _ in range(num_streams)]
        weights = None
        if self.next == "~w":
            weights = self.reference("w")
        elif self.next == "<SWEIGHTS>":
            weights = self.vector_body("<SWEIGHTS>", None)
        streams = []
        for number, limit in enumerate(num_mixes, start=1):
            self.refuse_other_kinds()
            if self.next == "<STREAM>":
                self.at += 1
                if self.count("stream", 1, num_streams) != number:
                    raise self.fault(f"stream {self.tokens[self.at - 1]}", f"stream {number}", self.at - 1)
            elif num_streams > 1 and self.next != "~p":
                raise self.fault(self.shown(), f"<STREAM> {number} of {num_streams}")
            begin = self.at
            stream = self.reference("p") if self.next == "~p" else self.stream_body(None, limit)
            self.check_width(stream, number, begin)
            streams.append(stream)
        self.refuse_other_kinds()
        return HmmState(tuple(streams), weights, macro)

    def check_width(self, stream: StreamMixture, number: int, begin: int) -> None:
        options = self.set.options
        widths = options.stream_widths or ((options.vector_size,) if options.vector_size else ())
        if widths and stream.components[0].mean.values.shape[0] != widths[number - 1]:
            size = stream.components[0].mean.values.shape[0]
            raise self.fault(f"means of {size} values in stream {number}", f"{widths[number - 1]}", begin)

    def stream_body(self, macro: str | None, limit: int | None = None) -> StreamMixture:
        self.refuse_other_kinds()
        if self.next == "<STREAM>":  # a shared stream may give its number
            self.at += 1
            self.count("stream")
        if self.next == "<NUMMIXES>":
            self.at += 1
            limit = self.count("number of components")
        begin = self.at
        weights = []
        components = []
        indices = set()
        if self.next != "<MIXTURE>":
            weights = [1.0]
            components = [self.component()]
        while self.next == "<MIXTURE>":
            self.at += 1
            index = self.count("component", 1, limit)
            if index in indices:
                raise self.fault(f"component {index} is defined twice", "each component once", self.at - 1)
            indices.add(index)
            weights.append(self.number("weight"))
            components.append(self.component())
        if min(weights) < 0 or abs(sum(weights) - 1) > TOLERANCE:
            raise self.fault(f"weights that sum to {sum(weights):.4f}", "weights of at least 0 that sum to 1", begin)
        if len({component.mean.values.shape for component in components}) > 1:
            raise self.fault("means of different sizes in one mixture", "one size", begin)
        return StreamMixture(tuple(weights), tuple(components), macro)

    def component(self) -> GaussianComponent:
        component: GaussianComponent = self.reference("m") if self.next == "~m" else self.component_body(None)
        return component

    def component_body(self, macro: str | None) -> GaussianComponent:
        if self.next == "<RCLASS>":
            self.at += 1
            self.count("regression class", 0)
        begin = self.at
        mean = self.reference("u") if self.next == "~u" else self.vector_body("<MEAN>", None)
        self.refuse_other_kinds()
        variance = self.reference("v") if self.next == "~v" else self.vector_body("<VARIANCE>", None)
        if mean.values.shape != variance.values.shape:
            raise self.fault(
                f"a mean of {mean.values.shape[0]} values with a variance of {variance.values.shape[0]}",
                "as many",
                begin,
            )
        if not np.all(variance.values > 0):
            raise self.fault(f"variance {variance.values.min():g}", "variances above 0", begin)
        gconst = None
        if self.next == "<GCONST>":
            self.at += 1
            gconst = self.number("gconst")
        return GaussianComponent(mean, variance, gconst, macro)

    def vector_body(self, keyword: str, macro: str | None) -> MacroVector:
        self.require(keyword)
        return MacroVector(self.numbers(self.count(f"size of {keyword}"), keyword), macro)

    def transitions_body(self, macro: str | None) -> TransitionMatrix:
        self.require("<TRANSP>")
        begin = self.at
        size = self.count("number of states", 3, MAX_STATES)
        matrix = self.numbers(size * size, "<TRANSP>").reshape(size, size)
        if matrix.min() < 0 or matrix.max() > 1 + TOLERANCE:
            raise self.fault("a transition probability below 0 or above 1", "0 to 1", begin)
        sums = matrix.sum(axis=1)
        for state in range(size - 1):
            if abs(sums[state] - 1) > TOLERANCE:
                raise self.fault(f"transitions from state {state + 1} sum to {sums[state]:.4f}", "1", begin)
        if sums[-1] or matrix[:, 0].any():
            raise self.fault("transitions out of the last state or into the first", "none", begin)
        return TransitionMatrix(matrix, macro)


def summary(path: str) -> Figures:
    """Return the figures of a file for `argonaut info`."""
    from readers.htk.hmm_set import MACRO_KINDS

    hmm_set = read_mmf(path)
    options = hmm_set.options
    shared = [f"{len(parts)} {MACRO_KINDS[kind]}" for kind, parts in hmm_set.macros.items() if kind != "h" and parts]
    tees = [name for name, hmm in hmm_set.hmms.items() if hmm.is_tee]
    return [
        ("models", len(hmm_set.hmms)),
        ("shared", ", ".join(shared) or "nothing"),
        ("frames", f"{options.vector_size or 'size not given'}, {options.kind or 'kind not given'}"),
        *([("T-models", " ".join(tees))] if tees else []),
        ("+names", " ".join(hmm_set.hmms)),
    ]
