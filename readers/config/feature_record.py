"""How features were computed: a record in models and beside feature files, so that both can be compared."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn, Self

from readers.config.options import Options, option
from readers.errors import FormatError

VERSION = 1
IGNORE_HINT = "ignoreFeatureMismatch=true uses them anyway"  # end of messages about configurations

MAX_RATES = 16  # a record of more sample rates names none
MAX_CONTEXT = 10_000  # frames
MAX_ROWS = 1000  # of static features
MAX_SUBSAMPLING = 1000  # frames, or samples
QUALIFIERS = "EDNATZ0"  # of a kind, in HTK's order; the others concern the storage
KINDS = ("WAVEFORM", "LPC", "LPREFC", "LPCEPSTRA", "LPDELCEP", "MFCC", "FBANK", "MELSPEC", "PLP")  # others say nothing
TYPES: dict[str, type] = {
    **dict.fromkeys(("TARGETKIND", "TOOLKIT"), str),
    **dict.fromkeys(("TARGETRATE", "WINDOWSIZE", "PREEMCOEF", "LOFREQ", "HIFREQ"), float),
    **dict.fromkeys(("CEPLIFTER", "COMPRESSFACT", "ESCALE", "SILFLOOR"), float),
    **dict.fromkeys(("NUMCHANS", "NUMCEPS", "LPCORDER", "DELTAWINDOW", "ACCWINDOW", "THIRDWINDOW"), int),
    **dict.fromkeys(("USEHAMMING", "ZMEANSOURCE", "DOUBLEFFT", "USEPOWER", "KALDI", "SNIPEDGES"), bool),
    **dict.fromkeys(("RAWENERGY", "ENORMALISE", "SIMPLEDIFFS", "SPHINX", "REMOVENOISE"), bool),
    "SPEECHMEAN": tuple,
}
# Other conventions than HTK's, which a record names only where features have them.
CONVENTIONS: dict[str, Any] = {"KALDI": False, "SNIPEDGES": True, "SPHINX": False, "REMOVENOISE": False, "TOOLKIT": ""}
_CHECKSUM = re.compile("[0-9a-f]{16}")
_TOOLKIT = re.compile("[A-Z0-9]{1,16}")


@dataclass(frozen=True, kw_only=True)
class MismatchOptions(Options):
    """Whether features are compared with those of other files and of the model."""

    ignores_mismatch: bool = option(
        False,
        "use features that were computed in another way than those of other files, or than those of the model",
        cntk="ignoreFeatureMismatch",
    )


@dataclass(frozen=True)
class FeatureRecord:
    """How features were computed, as far as it is known.

    Attributes
    ----------
    settings : mapping of str to str, float, int, bool or tuple of float
        Settings of HCopy by their names in HTK, a subset of TYPES.
    rates : tuple of float
        Sample rates of the audio in Hz; empty if unknown.
    context : (int, int) or None
        Of a model: frames of context on the left and on the right that its input contains.
    subsampling : int
        Of a model: frames per column of its input and output (frameSubsampling).
    edges : (int, int)
        Of a model: columns of repeated frames before and after the sequences of its training (chunkContext).
    extractor : str
        Of i-vectors: the checksum of the model that estimated them; "" for features and if unknown.
    """

    settings: Mapping[str, Any] = field(default_factory=dict)
    rates: tuple[float, ...] = ()
    context: tuple[int, int] | None = None
    subsampling: int = 1
    edges: tuple[int, int] = (0, 0)
    extractor: str = ""

    @classmethod
    def of_header(cls, kind: str, period: int) -> Self:
        """Return what the header of an HTK file tells.

        Parameters
        ----------
        kind : str
            Such as FBANK_D_C_K_Z.
        period : int
            Time between frames in 100 ns units.

        Returns
        -------
        FeatureRecord
        """
        plain = plain_kind(kind)
        return cls(({"TARGETKIND": plain} if plain else {}) | {"TARGETRATE": period})

    @classmethod
    def parse(cls, data: Any, where: str) -> Self:
        """Return the record that `as_json` described.

        Parameters
        ----------
        data : Any
            A parsed JSON value.
        where : str
            Where it was found, for messages.

        Returns
        -------
        FeatureRecord

        Raises
        ------
        FormatError
            For another version, and for unknown names and values out of range.
        """

        def refuse(what: str, found: object, expected: str) -> NoReturn:
            raise FormatError(f"{where}: {what} is {str(found)[:60]!r}; expected {expected}")

        if not isinstance(data, dict):
            refuse("record of features", data, "an object")
        if data.get("version") != VERSION:
            refuse("version of the record of features", data.get("version"), f"{VERSION}")
        settings = data.get("settings")
        rates = data.get("sample_rates", [])
        context = data.get("context")
        if not isinstance(settings, dict):
            refuse("'settings'", settings, "an object with HTK's names")
        for name, value in settings.items():
            if name not in TYPES:
                refuse("name of a setting of features", name, f"one of {', '.join(TYPES)}")
            if name == "TOOLKIT":
                if not (isinstance(value, str) and _TOOLKIT.fullmatch(value)):
                    refuse(name, value, "the name of a toolkit")
            elif not _fits(value, TYPES[name]):
                expected = {
                    str: "a kind of features",
                    bool: "true or false",
                    tuple: f"at most {MAX_ROWS} numbers from -1e9 to 1e9",
                }
                refuse(name, value, expected.get(TYPES[name], "a number"))
        settings = {name: tuple(value) if TYPES[name] is tuple else value for name, value in settings.items()}
        if not isinstance(rates, list) or len(rates) > MAX_RATES or not all(_fits(r, float) and r > 0 for r in rates):
            refuse("'sample_rates'", rates, f"at most {MAX_RATES} numbers above 0")
        edges = data.get("edges", [0, 0])
        subsampling = data.get("subsampling", 1)
        for name, pair in (("context", context), ("edges", edges)):
            sound = (
                isinstance(pair, list) and len(pair) == 2 and all(_fits(n, int) and 0 <= n <= MAX_CONTEXT for n in pair)
            )
            if not sound and not (pair is None and name == "context"):
                refuse(f"'{name}'", pair, f"two numbers of frames, 0 to {MAX_CONTEXT}")
        if not _fits(subsampling, int) or not 1 <= subsampling <= MAX_SUBSAMPLING:
            refuse("'subsampling'", subsampling, f"1 to {MAX_SUBSAMPLING} frames")
        extractor = data.get("extractor", "")
        if not isinstance(extractor, str) or (extractor and not _CHECKSUM.fullmatch(extractor)):
            refuse("'extractor'", extractor, "a checksum of 16 hexadecimal digits")
        return cls(settings, tuple(rates), context and tuple(context), subsampling, tuple(edges), extractor)

    def as_json(self) -> dict[str, Any]:
        """Return the record as an object of JSON."""
        context = {} if self.context is None else {"context": list(self.context)}
        rates = {"sample_rates": list(self.rates)} if self.rates else {}
        slower = {"subsampling": self.subsampling} if self.subsampling > 1 else {}
        edges = {"edges": list(self.edges)} if any(self.edges) else {}
        ivectors = {"extractor": self.extractor} if self.extractor else {}
        return {"version": VERSION, **rates, **context, **slower, **edges, **ivectors, "settings": dict(self.settings)}

    def with_rates(self, rates: Iterable[float]) -> Self:
        """Return the record with more sample rates; with none if there are too many."""
        every = tuple(sorted({*self.rates, *rates}))
        return replace(self, rates=every if len(every) <= MAX_RATES else ())

    def texts(self) -> list[str]:
        """Return each part of the record as text, for people."""
        rates = [f"sample rate {' and '.join(f'{rate:g}' for rate in self.rates)} Hz"] if self.rates else []
        context = [f"window {self.window} frames ({self.context[0]}+1+{self.context[1]})"] if self.context else []
        slower = [f"subsampling {self.subsampling}"] if self.subsampling > 1 else []
        edges = ["edges of {}+{} columns".format(*self.edges)] if any(self.edges) else []
        ivectors = [f"i-vectors of model {self.extractor}"] if self.extractor else []
        return [
            *rates,
            *context,
            *slower,
            *edges,
            *ivectors,
            *(_text(name, value) for name, value in self.settings.items()),
        ]

    @property
    def is_detailed(self) -> bool:
        """Whether more is known than the header of a feature file contains."""
        return bool(self.rates) or not self.settings.keys() <= {"TARGETKIND", "TARGETRATE"}

    @property
    def window(self) -> int | None:
        """Number of frames in the input of the model; None if unknown."""
        return None if self.context is None else 1 + sum(self.context)

    def mismatch(self, where: str, other: "FeatureRecord", why: str) -> str | None:
        """Compare with the features that are expected, as far as both are known.

        Sample rates may differ if HIFREQ is below half of each and _Z without SPEECHMEAN removes the factor between the
        spectra.

        Parameters
        ----------
        where : str
            The name of these features in the message.
        other : FeatureRecord
            What is expected, such as the record of a model.
        why : str
            Why, for the end of the message: "with which X was trained".

        Returns
        -------
        str or None
            A message that names both sides; None if they agree.
        """
        differences = []
        expected = []
        if self.rates and other.rates and not set(self.rates) <= set(other.rates) and not self._same_band(other):
            differences.append(f"sample rate {' and '.join(f'{rate:g}' for rate in self.rates)} Hz")
            expected.append(f"{' or '.join(f'{rate:g}' for rate in other.rates)} Hz")
        if self.extractor and other.extractor and self.extractor != other.extractor:
            differences = [f"i-vectors of model {self.extractor}"]
            expected = [f"those of {other.extractor}"]
        settings = self._with_conventions()
        other_settings = other._with_conventions()
        for name in TYPES:
            if name in settings and name in other_settings and not self._agrees(other, name):
                values = settings[name], other_settings[name]
                at = _first_difference(*values) if TYPES[name] is tuple else None
                texts = [_text(name, value) if at is None else f"{name}[{at}] {value[at]:g}" for value in values]
                differences.append(texts[0])
                expected.append(texts[1])
        if self.context and other.context and self.context != other.context:
            differences.append("context {}+{}".format(*self.context))
            expected.append("{}+{}".format(*other.context))
        if self.context and other.context and self.subsampling != other.subsampling:
            differences.append(f"subsampling {self.subsampling}")
            expected.append(f"{other.subsampling}")
        return f"{where}: {', '.join(differences)}; expected {', '.join(expected)}, {why}" if differences else None

    def updated(self, newer: "FeatureRecord") -> "FeatureRecord":
        """Return this record with what a newer one knows; sample rates are added."""
        input_of = newer if newer.context else self
        return replace(
            self,
            settings={**self.settings, **newer.settings},
            context=input_of.context,
            subsampling=input_of.subsampling,
            edges=input_of.edges,
            extractor=newer.extractor or self.extractor,
        ).with_rates(newer.rates)

    def _with_conventions(self) -> dict[str, Any]:
        """Return the settings with those of HTK's conventions, if more is known than the header of a file contains."""
        return {**(CONVENTIONS if "USEHAMMING" in self.settings else {}), **self.settings}

    def _agrees(self, other: "FeatureRecord", name: str) -> bool:
        value = self._with_conventions()[name]
        expected = other._with_conventions()[name]
        if name == "TARGETRATE":  # a frame is a whole number of samples
            return bool(abs(value - expected) <= 0.01 * expected)
        if name == "HIFREQ":
            limits = {self._highest(), other._highest()}
            return bool(value == expected) or None in limits or len(limits) == 1
        return bool(value == expected)

    def _highest(self) -> float | None:
        """Return the highest frequency of the filterbank in Hz; None if it is half of an unknown sample rate."""
        limit: float = self.settings["HIFREQ"]
        if limit < 0:
            return self.rates[0] / 2 if len(self.rates) == 1 else None
        return limit

    @property
    def _removes_level(self) -> bool:
        """Whether the mean of the utterance is subtracted, and with it the factor between spectra."""
        kind = str(self.settings.get("TARGETKIND"))
        return "Z" in kind.split("_") and not self.settings.get("SPEECHMEAN")

    def _same_band(self, other: "FeatureRecord") -> bool:
        limits = {record.settings.get("HIFREQ", -1) for record in (self, other)}
        removed = all(record._removes_level for record in (self, other))
        return removed and len(limits) == 1 and 0 <= limits.pop() <= min(*self.rates, *other.rates) / 2


def _first_difference(one: tuple[float, ...], other: tuple[float, ...]) -> int | None:
    """Return the first place where two rows of numbers of one length differ; None for other lengths."""
    if len(one) != len(other):
        return None
    return next((at for at, (a, b) in enumerate(zip(one, other)) if a != b), None)


def plain_kind(kind: str) -> str:
    """Return a kind without what concerns its storage, qualifiers in HTK's order; "" for a kind that tells nothing."""
    base, *qualifiers = kind.split("_")
    sorted_qualifiers = [qualifier for qualifier in QUALIFIERS if qualifier in qualifiers]
    return "_".join([base, *sorted_qualifiers]) if base in KINDS else ""


def _fits(value: object, kind: type) -> bool:
    if kind is str:
        return isinstance(value, str) and bool(value) and plain_kind(value) == value
    if kind is bool:
        return isinstance(value, bool)
    if kind is tuple:
        return isinstance(value, list) and len(value) <= MAX_ROWS and all(_fits(number, float) for number in value)
    if isinstance(value, bool) or not isinstance(value, int if kind is int else (int, float)):
        return False
    return -1e9 <= value <= 1e9  # not NaN either


def _text(name: str, value: Any) -> str:
    if name in ("LOFREQ", "HIFREQ") and value < 0:
        return f"{name} none"
    if value == "":
        return f"{name} none"
    if isinstance(value, bool):
        return f"{name} {'T' if value else 'F'}"
    if isinstance(value, tuple):
        return f"{name} {value[0]:g} ... ({len(value)} values)" if value else f"{name} none"
    return f"{name} {value:g}" if isinstance(value, float) else f"{name} {value}"
