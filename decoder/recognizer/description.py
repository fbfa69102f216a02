"""bundle.json: what a bundle is, how its audio is processed, how it searches, and the checksums of its members.

    {"format": "argonaut-bundle", "version": 1, "name": "an4", "language": "en", "licence": "", "created_by": "...",
     "sample_rate": 16000, "features": {"version": 1, "settings": {"TARGETKIND": "FBANK_Z_D", ...}},
     "hcopy": {"TARGETKIND": "FBANK_Z_D", ...}, "window": 21, "output": "ScaledLogLikelihood",
     "options": {"acweight": 0.15, ...}, "silence": null, "vocabulary": 105, "lowest_rate": 8000,
     "card": {"data": ["AN4, train: 74 speakers"], "hours": 0.8, "speakers": 74, "weaknesses": ["noise"]},
     "errors": [{"test_set": "test", "unit": "WER", "percent": 4.9, "utterances": 130, "words": 773}],
     "members": [{"name": "graph.dg", "size": 123456, "crc32": [1234567890]}, ...], "crc32": 2345678901}

The fields vocabulary (words that can be recognised), lowest_rate (of the audio that the network was trained for, if it
is less than sample_rate) and card may be missing, and so may aligner, of a bundle that aligns with another network:

     "aligner": {"output": "ScaledLogLikelihood", "window": 21}

Each member has the CRC-32 of every 4 MiB.  The last entry is the
CRC-32 of all the others, as compact JSON with sorted keys, so that a changed option is noticed, too.
"""

import json
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn, Self

from decoder.graph.graph_file import is_search_option
from readers.common.report import Figures
from readers.common.text import parse_object
from readers.config.feature_record import FeatureRecord
from readers.errors import FormatError

FORMAT, VERSION = "argonaut-bundle", 1
MAX_BYTES = 1 << 22  # of bundle.json
MAX_TEXT, MAX_SETTING, MAX_HCOPY = 1000, 200, 20_000  # characters; the last for SPEECHMEAN
MAX_RATE, MAX_WINDOW, MAX_ENTRIES = 1_000_000, 1001, 1000
AGAIN = "make the bundle again with argonaut pack"
CHECKSUM = "crc32"
_FIELDS = {
    *("format", "version", "name", "language", "licence", "created_by", "sample_rate", "features", "hcopy", "window"),
    *("output", "options", "silence", "errors", "members", CHECKSUM),
}
_OPTIONAL_FIELDS = {"vocabulary", "lowest_rate", "card", "aligner"}
_ALIGNER_FIELDS = {"output", "window"}
_CARD_FIELDS = {"data", "hours", "speakers", "weaknesses"}


@dataclass(frozen=True)
class MeasuredErrors:
    """An error rate that was measured with the parts of a bundle.

    Attributes
    ----------
    test_set : str
        What was recognised.
    unit : str
        Such as WER or PER.
    percent : float
    num_utterances, num_words : int
        Size of the test set.
    """

    test_set: str
    unit: str
    percent: float
    num_utterances: int
    num_words: int

    def __str__(self) -> str:
        return (
            f"{self.unit} {self.percent:.1f}% ({self.test_set}, {self.num_utterances} utterances, "
            f"{self.num_words} words)"
        )


@dataclass(frozen=True)
class ModelCard:
    """What a model was made of, and what it is not made for.

    Attributes
    ----------
    data : tuple of str
        Sets of the training, a line for each.
    hours : float
        Duration of the speech of the training, without copies.
    speakers : int
    weaknesses : tuple of str
        What the model is bad at, a line for each.
    """

    data: tuple[str, ...] = ()
    hours: float = 0.0
    speakers: int = 0
    weaknesses: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Return the field card of bundle.json."""
        data, weaknesses = list(self.data), list(self.weaknesses)
        return {"data": data, "hours": self.hours, "speakers": self.speakers, "weaknesses": weaknesses}

    @classmethod
    def parse(cls, data: Any, where: str) -> Self:
        """Return the card in a JSON object.  Raises FormatError for a missing or unknown field, and a wrong value."""
        if not isinstance(data, dict) or data.keys() != _CARD_FIELDS:
            fields = ", ".join(sorted(data)) if isinstance(data, dict) else str(data)
            raise FormatError(f"{where}: card with {fields[:60]!r}; expected {', '.join(sorted(_CARD_FIELDS))}")
        for name in ("data", "weaknesses"):
            lines = data[name]
            if not (isinstance(lines, list) and len(lines) <= MAX_ENTRIES and all(map(_is_line, lines))):
                raise FormatError(f"{where}: {name} is {str(lines)[:60]!r}; expected a list of lines of text")
        for name, kinds in (("hours", (int, float)), ("speakers", (int,))):
            if type(data[name]) not in kinds or not 0 <= data[name] < 2**53:
                raise FormatError(f"{where}: {name} is {str(data[name])[:60]!r}; expected a number of at least 0")
        return cls(tuple(data["data"]), data["hours"], data["speakers"], tuple(data["weaknesses"]))

    def figures(self) -> Figures:
        """Return names and values for people, without those that are not known."""
        return [
            *(("data", line) for line in self.data),
            *([("hours", f"{self.hours:g}")] if self.hours else []),
            *([("speakers", self.speakers)] if self.speakers else []),
            *(("bad at", line) for line in self.weaknesses),
        ]


@dataclass(frozen=True)
class AlignerDescription:
    """How a network is used that aligns instead of that of the search.

    Attributes
    ----------
    window : int
        Frames that its input stacks.
    output : str
        Its output node.
    """

    window: int
    output: str = "ScaledLogLikelihood"

    def as_json(self) -> dict[str, Any]:
        """Return the field aligner of bundle.json."""
        return {"output": self.output, "window": self.window}

    @classmethod
    def parse(cls, data: Any, where: str) -> Self:
        """Return the description in a JSON object.  Raises FormatError for unexpected fields, and a wrong value."""
        if not isinstance(data, dict) or data.keys() != _ALIGNER_FIELDS:
            raise FormatError(f"{where}: aligner {str(data)[:60]!r}; expected {', '.join(sorted(_ALIGNER_FIELDS))}")
        check = _Checks(data, f"{where}: aligner")
        return cls(check.window(), check.text("output"))


@dataclass(frozen=True)
class BundleDescription:
    """What a bundle says about itself, without its members.

    Attributes
    ----------
    name, language, licence, created_by : str
        For people; the language is a tag such as en or de-AT.
    sample_rate : int
        Sample rate of the audio in Hz.
    record : FeatureRecord
        How the features of the training were computed.
    hcopy : mapping of str to str
        The configuration of HCopy: upper-case name -> text of the value.
    window : int
        Frames that the network's input stacks.
    output : str
        Output node of the network.
    options : mapping of str to float
        Search options by the names of SearchOptions, some of `decoder.graph.graph_file.TUNED_OPTIONS`.
    silence : tuple of str or None
        Names of the silence models; None for the default of SearchOptions.
    errors : tuple of MeasuredErrors
    vocabulary : int
        Number of words that can be recognised; 0 if it is not known.
    lowest_rate : int
        Sample rate in Hz from which audio is accepted without the option upsample; 0 for `sample_rate`.
    card : ModelCard
    aligner : AlignerDescription, optional
        Of the network that aligns, if it is not that of the search.
    """

    name: str
    sample_rate: int
    hcopy: Mapping[str, str]
    window: int
    record: FeatureRecord = field(default_factory=FeatureRecord)
    output: str = "ScaledLogLikelihood"
    options: Mapping[str, float] = field(default_factory=dict)
    silence: tuple[str, ...] | None = None
    language: str = ""
    licence: str = ""
    created_by: str = ""
    errors: tuple[MeasuredErrors, ...] = ()
    vocabulary: int = 0
    lowest_rate: int = 0
    card: ModelCard = field(default_factory=ModelCard)
    aligner: AlignerDescription | None = None

    def figures(self) -> Figures:
        """Return names and values for people."""
        lowest = f", from {self.lowest_rate} Hz" if self.lowest_rate else ""
        return [
            ("name", self.name),
            ("language", self.language or "not named"),
            ("licence", self.licence or "not named"),
            *self.card.figures(),
            ("audio", f"{self.sample_rate} Hz{lowest}"),
            *([("vocabulary", f"{self.vocabulary} words")] if self.vocabulary else []),
            *(("errors", str(rate)) for rate in self.errors),
        ]

    def as_json(self) -> dict[str, Any]:
        """Return the fields of bundle.json except members and checksum."""
        texts = {name: getattr(self, name) for name in ("name", "language", "licence", "created_by", "output")}
        errors = [
            {
                "test_set": measurement.test_set,
                "unit": measurement.unit,
                "percent": measurement.percent,
                "utterances": measurement.num_utterances,
                "words": measurement.num_words,
            }
            for measurement in self.errors
        ]
        return {
            "format": FORMAT,
            "version": VERSION,
            **texts,
            "sample_rate": self.sample_rate,
            "features": self.record.as_json(),
            "hcopy": dict(self.hcopy),
            "window": self.window,
            "options": dict(self.options),
            "silence": None if self.silence is None else list(self.silence),
            "errors": errors,
            "vocabulary": self.vocabulary,
            "lowest_rate": self.lowest_rate,
            "card": self.card.as_json(),
            **({} if self.aligner is None else {"aligner": self.aligner.as_json()}),
        }

    @classmethod
    def parse(cls, data: Mapping[str, Any], where: str) -> Self:
        """Return the description in the fields of bundle.json.

        Parameters
        ----------
        data : mapping of str to Any
            The parsed JSON object.
        where : str
            The file, for messages.

        Returns
        -------
        BundleDescription

        Raises
        ------
        FormatError
            For a field that is missing, unknown, or has a value out of range.
        """
        check = _Checks(data, where)
        check.names()
        hcopy = check.mapping("hcopy", "settings of HCopy", lambda name, value: _is_text(value, MAX_HCOPY))
        silence = data["silence"]
        listed = isinstance(silence, list) and len(silence) <= MAX_ENTRIES
        if silence is not None and not (listed and all(_is_text(name, MAX_SETTING) for name in silence)):
            check.refuse("silence", "null, or names of models")
        errors = data["errors"]
        if not isinstance(errors, list) or len(errors) > MAX_ENTRIES or not all(map(_is_error_rate, errors)):
            check.refuse("errors", "objects with test_set, unit, percent, utterances and words")
        if "card" not in data:  # of a bundle of an earlier release
            check.data = data = {"vocabulary": 0, "lowest_rate": 0, "card": ModelCard().as_json(), **data}
        return cls(
            **{name: check.text(name) for name in ("name", "language", "licence", "created_by", "output")},
            sample_rate=check.whole("sample_rate", 1, MAX_RATE),
            record=FeatureRecord.parse(data["features"], where),
            hcopy=hcopy,
            window=check.window(),
            options=check.mapping("options", "search options", is_search_option),
            silence=None if silence is None else tuple(silence),
            errors=tuple(map(_measured, errors)),
            vocabulary=check.whole("vocabulary", 0, 2**31),
            lowest_rate=check.whole("lowest_rate", 0, MAX_RATE),
            card=ModelCard.parse(data["card"], where),
            aligner=AlignerDescription.parse(data["aligner"], where) if "aligner" in data else None,
        )


class _Checks:
    """Checks the fields of one JSON object; every fault is a FormatError."""

    def __init__(self, data: Mapping[str, Any], where: str):
        self.data = data
        self.where = where

    def refuse(self, name: str, expected: str) -> NoReturn:
        raise FormatError(f"{self.where}: {name} is {str(self.data[name])[:60]!r}; expected {expected}; {AGAIN}")

    def names(self) -> None:
        for name in sorted((self.data.keys() ^ _FIELDS) - _OPTIONAL_FIELDS):
            problem = f"unknown field {name[:60]!r}" if name in self.data else f"no field {name!r}"
            raise FormatError(f"{self.where}: {problem}; expected the fields of version {VERSION}; {AGAIN}")

    def text(self, name: str) -> str:
        if not _is_text(self.data[name], MAX_TEXT):
            self.refuse(name, f"text of at most {MAX_TEXT} characters in one line")
        return self.data[name]

    def whole(self, name: str, least: int, most: int) -> int:
        value = self.data[name]
        if type(value) is not int or not least <= value <= most:
            self.refuse(name, f"a whole number, {least} to {most}")
        return value

    def window(self) -> int:
        window = self.whole("window", 1, MAX_WINDOW)
        if window % 2 == 0:
            self.refuse("window", "an odd number of frames")
        return window

    def mapping(self, name: str, what: str, sound: Callable[[str, Any], bool]) -> dict[str, Any]:
        value = self.data[name]
        if not isinstance(value, dict) or len(value) > MAX_ENTRIES:
            self.refuse(name, what)
        for key, entry in value.items():
            if not _is_text(key, MAX_SETTING) or not sound(key, entry):
                raise FormatError(
                    f"{self.where}: {name}: {key[:60]!r} is {str(entry)[:60]!r}; expected {what}; {AGAIN}"
                )
        return value


def read_card(path: str | Path) -> tuple[ModelCard, tuple[MeasuredErrors, ...]]:
    """Read a card, as `argonaut pack --card` takes it.

    Parameters
    ----------
    path : str or Path
        A JSON object with data, hours, speakers, weaknesses and, if they were measured, errors; as in bundle.json.

    Returns
    -------
    (ModelCard, tuple of MeasuredErrors)

    Raises
    ------
    FormatError
        For a missing or unknown field, and a wrong value.
    OSError
    """
    data = parse_object(Path(path).read_bytes(), f"{path}", "the JSON of a card")
    errors = data.pop("errors", [])
    if not isinstance(errors, list) or not all(map(_is_error_rate, errors)):
        raise FormatError(f"{path}: errors; expected objects with test_set, unit, percent, utterances and words")
    return ModelCard.parse(data, f"{path}"), tuple(map(_measured, errors))


def _measured(entry: Mapping[str, Any]) -> MeasuredErrors:
    return MeasuredErrors(entry["test_set"], entry["unit"], entry["percent"], entry["utterances"], entry["words"])


def _is_line(value: object) -> bool:
    return _is_text(value, MAX_TEXT)


def _is_text(value: object, most: int) -> bool:
    return isinstance(value, str) and len(value) <= most and all(character.isprintable() for character in value)


def _is_error_rate(entry: object) -> bool:
    if not isinstance(entry, dict) or entry.keys() != {"test_set", "unit", "percent", "utterances", "words"}:
        return False
    counts = all(type(entry[name]) is int and 0 <= entry[name] < 2**53 for name in ("utterances", "words"))
    texts = all(_is_text(entry[name], MAX_SETTING) for name in ("test_set", "unit"))
    return counts and texts and type(entry["percent"]) in (int, float) and 0 <= entry["percent"] <= 1e6


def dump(content: Mapping[str, Any]) -> bytes:
    """Return bundle.json with its checksum; `content` has all other fields."""
    signed = {**content, CHECKSUM: _checksum(content)}
    return (json.dumps(signed, ensure_ascii=False, allow_nan=False, indent=1) + "\n").encode()


def undump(raw: bytes, where: str) -> dict[str, Any]:
    """Return the fields of bundle.json; of them only format, version and checksum are checked.

    Raises FormatError.
    """
    data = parse_object(raw, where, f"the JSON of a bundle; {AGAIN}")
    if data.get("format") != FORMAT:
        raise FormatError(f"{where}: no format {FORMAT!r}; expected the description of a bundle")
    if data.get("version") != VERSION or isinstance(data["version"], bool):
        raise FormatError(f"{where}: bundle of version {str(data.get('version'))[:20]}; expected {VERSION}; {AGAIN}")
    if data.get(CHECKSUM) != _checksum({name: value for name, value in data.items() if name != CHECKSUM}):
        raise FormatError(f"{where}: wrong checksum; the description is damaged or was edited; {AGAIN}")
    return data


def _checksum(content: Mapping[str, Any]) -> int:
    return zlib.crc32(json.dumps(content, sort_keys=True, separators=(",", ":")).encode())
