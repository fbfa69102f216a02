"""Tells what a text file is."""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

from readers.common.report import REPORT, Figures
from readers.common.text import is_count, is_number, parse_json, read_lines, read_text, split_fields
from readers.config.side_files import FORMAT
from readers.config.syntax import strip_comment
from readers.dictionaries.forms import detect_form, read_dictionary_lines
from readers.errors import FormatError
from readers.htk.storage.label_fields import HEADER
from readers.language.cmudict import COMMENT
from readers.results.nbest import consensus_slots
from readers.results.timed_words import CUE, STM_COMMENT, is_ctm
from readers.tables.hmm_tables import is_bracketed, read_topology

ARC = re.compile(r"\d+\s+\d+\s+\S+(\s+[-+.\deE]+)?")
ARK_ENTRY = re.compile(r"\S+\s+\S+(:\d+(\[[\d:,]+\])?|\.ark)")
BLOCK = re.compile(r"\s*[^\W\d]\w*\s*=?\s*\[")
BRACKETED_NAME = re.compile(r"[^\s=\[\]()]+(\[\d+\])?")
CALL = re.compile(r"\s*(?:[^\W\d][\w.]*\s*=\s*)?([^\W\d]\w*)\s*\(")
CONTENTS = re.compile(r"[^=]+=.*\[\d+\]")
ENTRY_WITH_BLANKS = re.compile(r"[^\s=]+=(?:/|\.|\w:[/\\]).*\.\w+(?:\[\d+,\d+(?:,\d+)?\])?")  # of an SCP
FILE_NAME = re.compile(r".*[/\\].*|.+\.\w+")
GRAPHVIZ = re.compile(r"(strict\s+)?(di)?graph\b[^=]*\{")
HCOPY_NAMES = {"TARGETKIND", "SOURCEKIND", "SOURCEFORMAT", "SOURCERATE", "TARGETRATE", "WINDOWSIZE", "NUMCHANS"}
HISTORY = re.compile(r'\{"epoch": \d+,')
INDEX = re.compile(r"\d{1,18}\t[^\t]+")
ITERATIONS = re.compile(r'\{"iteration": \d+,')
KALDI_LINK = re.compile(r"\d+\s+\d+\s+\S+(\s+\S+)?\s+[^\s,]+,[^\s,]+(,\S*)?")  # of a lattice, compact or not
MIXTURE_TOLERANCE = 1e-3
MODEL = re.compile(r"~[a-z]\b|<beginhmm>", re.IGNORECASE)
OUTPUT = re.compile(r"\S+\s+\[[^\[\]\s]*\]")
RANGE = re.compile(r"=[^\s=]+\[\d+,\d+\]$")
SETTING = re.compile(r"\s*(?:\w+\s*:)?\s*(\w+)\s*=")
SLF_SIZES = re.compile(r"(N|NODES)=\d+\s+(L|LINKS)=\d+")
SPEAKER_MAPS = ("speakers", "utt2spk")  # of argonaut import, of Kaldi
STATE = re.compile(r"\S*(\[\d+\]|_s?\d+)")  # names of states: aa_s2, aa_s2_1, sil[2], ST_a_3
TEXT_MATRIX = re.compile(r"\S+\s+\[\s*(\]\s*($|\S+\s+\[)|[-+.\d]\S*(\s|$))")
TOP = re.compile(r"\s*(command|action|precision|deviceId|modelPath|include)\s*=", re.IGNORECASE)
TRN = re.compile(r"(?:^|\s)\([^()\s]+\)$")


class Text:
    """A text file: its lines without blanks at the ends, those that are filled, and their fields."""

    def __init__(self, path: str):
        self.path = path
        self.lines = [line.strip() for line in read_dictionary_lines(path)]
        self.filled = [line for line in self.lines if line]
        self.rows = [line.split() for line in self.filled]
        self.first = self.filled[0] if self.filled else ""
        self.fields = self.first.split()

    def all_match(self, pattern: re.Pattern[str]) -> bool:
        """Whether there are filled lines, and each of them matches."""
        return bool(self.filled) and all(map(pattern.fullmatch, self.filled))

    def all_rows(self, test: Callable[[list[str]], object]) -> bool:
        """Whether there are filled lines, and the fields of each pass a test."""
        return bool(self.rows) and all(map(test, self.rows))

    @cached_property
    def objects(self) -> list[dict[str, Any]]:
        """The JSON object of the file, or the objects of its lines; empty if it holds anything else."""
        return json_objects(self.path) if self.first.startswith("{") else []

    @property
    def object(self) -> dict[str, Any]:
        """The only JSON object of the file."""
        return self.objects[0] if len(self.objects) == 1 else {}

    @cached_property
    def scores(self) -> list[float]:
        """The numbers of a table with one number for each name; empty for another file."""
        is_table = self.all_rows(lambda row: len(row) == 2 and (is_number(row[1]) or row[1].lower() == "-inf"))
        return [float(row[1]) for row in self.rows] if is_table and has_words(self.rows, 0, 1) else []

    @cached_property
    def named_scores(self) -> dict[str, str]:
        """The table of `scores`, if no name is repeated."""
        table = dict(self.rows) if self.scores else {}
        return table if len(table) == len(self.rows) else {}

    @cached_property
    def counts(self) -> list[int]:
        """The values of `named_scores`, if all are counts."""
        values = list(self.named_scores.values())
        return list(map(int, values)) if all(map(is_count, values)) else []


def json_objects(path: str) -> list[dict[str, Any]]:
    """Return the JSON object of a file, or the objects of its lines; empty if it holds anything else."""
    text = read_text(path)
    try:
        values = [parse_json(text)]
    except ValueError:
        try:
            values = [parse_json(line) for line in text.splitlines() if line.strip()]
        except ValueError:
            return []
    return values if all(isinstance(value, dict) for value in values) else []


def has_words(rows: Sequence[Sequence[str]], first: int, end: int | None = None) -> bool:
    """Whether some field is no number."""
    return any(not is_number(field) for row in rows for field in row[first:end])


def _are_confusions(text: Text) -> bool:
    rows = [line.split("\t") for line in text.filled]
    if not rows or not all(len(row) == 3 and is_count(row[0]) and row[1] != row[2] for row in rows):
        return False
    return all(int(a[0]) >= int(b[0]) for a, b in pairwise(rows)) and has_words(rows, 1)


def _are_hypotheses(text: Text) -> bool:
    rows = [row for row in text.rows if not row[0].startswith("#")]
    counted = all(len(row) > 3 and is_count(row[3]) and int(row[3]) == len(row) - 4 for row in rows)
    return counted and all(is_number(score) for row in rows for score in row[1:3]) and has_words(rows, 4)


def _are_networks(text: Text) -> bool:
    slots = [consensus_slots(row) for row in text.rows] if any("[" in row for row in text.rows) else [None]
    return None not in slots and has_words([word for row in slots for word in row or ()], 0)


def _are_timed(text: Text) -> bool:
    rows = [row for row in text.rows if not row[0].startswith(STM_COMMENT)]
    return (
        is_ctm(map(" ".join, rows))
        and all(is_number(row[5]) for row in rows if len(row) == 6)
        and has_words(rows, 4, 5)
    )


def _are_references(text: Text) -> bool:
    rows = [row for row in text.rows if not row[0].startswith(STM_COMMENT)]
    if not rows or not all(len(row) > 4 and is_number(row[3]) and is_number(row[4]) for row in rows):
        return False
    return all(0 <= float(row[3]) <= float(row[4]) for row in rows) and has_words(rows, 5)


def _is_vocabulary(text: Text) -> bool:
    """Whether it is a vocabulary, which looks like an acceptor but has no line for a final state."""
    numbered = all(
        len(row) == 4 and row[0] == str(k) and is_count(row[1]) and is_count(row[3]) for k, row in enumerate(text.rows)
    )
    return numbered and has_words(text.rows, 2, 3)


def _is_graph(text: Text) -> bool:
    return any(is_bracketed(row[2]) for row in text.rows if len(row) > 2 and any("[" in field for field in row))


def _is_index(text: Text) -> bool:
    if not text.all_match(INDEX) or not has_words(text.rows, 1, 2):
        return False
    return all(int(a[0]) < int(b[0]) for a, b in pairwise(text.rows))


def _is_topology(text: Text) -> bool:
    if not text.all_rows(lambda row: len(row) == 4 and not is_number(row[0]) and is_count(row[1]) and is_count(row[2])):
        return False
    try:
        read_topology(text.path)
    except FormatError:
        return False
    return True


def _is_hmm_list(text: Text) -> bool:
    physical = {row[1] for row in text.rows if len(row) == 2}
    return len(text.fields) < 3 and bool(physical) and physical <= {row[0] for row in text.rows if len(row) == 1}


def _are_alignments(text: Text) -> bool:
    rows = text.rows[:100]
    counts = len(text.fields) > 2 and all(row[1:] and all(map(str.isdigit, row[1:])) for row in rows)
    return counts and not text.fields[0].isdigit()


def _are_records(text: Text) -> bool:
    size = len(text.fields)
    return size > 1 and all(
        len(row) == size and sum(map(is_number, row)) >= max(2, size - 1) for row in text.rows[:100]
    )


# The kinds in the order in which they are tried.  A file with nothing but numbers holds no words with times or scores.
KINDS: tuple[tuple[str, Callable[[Text], object]], ...] = (
    ("master label file", lambda text: text.first == HEADER),
    ("pronunciation dictionary", lambda text: text.first.startswith(COMMENT)),
    ("history of a training", lambda text: HISTORY.match(text.first)),
    ("history of outer iterations", lambda text: ITERATIONS.match(text.first)),
    ("report of a run", lambda text: REPORT.fullmatch(text.first)),
    ("records in JSON, one per line", lambda text: len(text.objects) > 1),
    (
        "words with times (JSON)",
        lambda text: (
            text.object and all(isinstance(value, dict) and "words" in value for value in text.object.values())
        ),
    ),
    ("record of features", lambda text: text.object.get("format") == FORMAT),
    ("mark of a recipe's stage", lambda text: {"stage", "settings"} <= set(text.object)),
    ("search options that a recipe tried", lambda text: {"chosen", "trials"} <= set(text.object)),
    ("JSON", lambda text: text.objects),
    ("ARPA language model", lambda text: "\\data\\" in text.lines),
    ("HTK model definitions (MMF)", lambda text: MODEL.match(text.first)),
    ("decision trees or script of HHEd", lambda text: text.fields[:1] == ["QS"]),
    ("SLF lattice", lambda text: text.first.startswith("VERSION=") or any(map(SLF_SIZES.match, text.filled[:20]))),
    ("HMM state transitions", lambda text: text.first.startswith("[") and len(text.fields) == 3),
    (
        "states tied to senones",
        lambda text: text.first.startswith("[") and len(text.fields) == 2 and text.fields[1].startswith("["),
    ),
    ("map of graph states to network outputs", lambda text: text.first.startswith("[") and len(text.fields) == 2),
    ("TIMIT label file", lambda text: Path(text.path).suffix.lower() in (".phn", ".wrd")),
    (
        "script file (SCP)",
        lambda text: any(len(row) > 1 for row in text.rows) and text.all_match(ENTRY_WITH_BLANKS),
    ),
    (  # might also be a dictionary of words with one phone
        "speakers of utterances",
        lambda text: Path(text.path).name in SPEAKER_MAPS and text.all_rows(lambda row: len(row) == 2),
    ),
    ("subtitles", lambda text: text.filled[:1] == ["WEBVTT"] or any(map(CUE.match, text.filled[1:2]))),
    ("TextGrid of Praat", lambda text: re.match(r'(?:File type = )?"ooTextFile', text.first)),
    ("confusions of a score", _are_confusions),
    ("n-best lists", _are_hypotheses),
    ("consensus networks", _are_networks),
    ("words with times (CTM)", _are_timed),
    ("reference with times (STM)", _are_references),
    (
        "Kaldi lattices, as text",
        lambda text: len(text.fields) == 1 and any(map(KALDI_LINK.fullmatch, text.filled[1:2])),
    ),
    ("vocabulary with classes", _is_vocabulary),
    ("picture (Graphviz)", lambda text: GRAPHVIZ.match(text.first)),
    ("acceptor in AT&T text (a decoding graph)", lambda text: ARC.fullmatch(text.first) and _is_graph(text)),
    ("acceptor in AT&T text", lambda text: ARC.fullmatch(text.first)),
    ("transcripts", lambda text: bool(text.filled) and all(map(TRN.search, text.filled))),
    (  # else `minus(2) m ay n` would be a call of a network
        "pronunciation dictionary",
        lambda text: text.all_rows(lambda row: len(row) > 1) and detect_form(text.filled) == "cmu",
    ),
    ("index of lattices", _is_index),
    ("list of names", lambda text: text.all_match(BRACKETED_NAME) and any("[" in line for line in text.filled)),
    ("ways through HMMs (topology)", _is_topology),
    ("output words of a graph", lambda text: text.all_match(OUTPUT)),
    (
        "states of models (state map)",
        lambda text: text.all_rows(lambda row: len(row) > 1 and all(map(STATE.fullmatch, row[1:]))),
    ),
    (
        "words with counts",
        lambda text: text.counts and all(a >= b for a, b in pairwise(text.counts)) and text.counts[-1] > 0,
    ),
    ("symbol table", lambda text: text.counts and len(set(text.counts)) == len(text.counts)),
    ("look-ahead scores of a graph", lambda text: {"<s>", "</s>"} <= text.named_scores.keys()),
    (
        "mixture of language models",
        lambda text: (
            text.scores
            and all(FILE_NAME.fullmatch(row[0]) for row in text.rows)
            and abs(sum(text.scores) - 1) < MIXTURE_TOLERANCE
        ),
    ),
    ("names with a number each", lambda text: text.scores),
    ("HMM list", _is_hmm_list),
    ("table of contents of lattices", lambda text: text.all_match(CONTENTS)),
    ("Kaldi script file (scp)", lambda text: text.all_match(ARK_ENTRY)),
    ("Kaldi archive of features, as text", lambda text: TEXT_MATRIX.match(" ".join(text.filled[:2]))),
    ("Kaldi archive of alignments, as text", _are_alignments),
    ("records as text (UCI)", _are_records),
)


def text_kind(text: Text) -> str:
    """Return the kind of a text file.  Raises FormatError for an unknown one."""
    for kind, test in KINDS:
        if test(text):
            return kind
    return _configuration_kind(text.lines) or _list_kind(text)


def _configuration_kind(lines: list[str]) -> str | None:
    """Return the kind of a configuration, given its lines with comments; None for other text."""
    num_filled = sum(map(bool, lines))
    lines = [line for line in map(strip_comment, lines) if line]
    settings = [match.group(1) for line in lines if (match := SETTING.match(line))]
    if len(settings) == len(lines) and HCOPY_NAMES & set(settings):
        return "HCopy configuration"
    # Require settings, too: an entry `WORD [output] phones` of a dictionary begins like a block.
    blocks = bool(settings) and any(map(BLOCK.match, lines))
    if any(map(TOP.match, lines)):
        return "cntk configuration"
    calls = {match.group(1).lower() for line in lines if (match := CALL.match(line))}
    if calls & _editing_commands():
        return "model editing script (MEL)"
    if calls & _node_names():
        return "network description (NDL)"
    commented = len(lines) < num_filled and all(map(SETTING.match, lines))
    return "cntk configuration" if blocks or commented else None


def _list_kind(text: Text) -> str:
    """Return the kind of a file without special marks: a list or table of names.  Raises FormatError for other text."""
    try:
        pairs = [[name for name, _ in split_fields(line, "")] for line in text.filled]
    except FormatError:
        pairs = []
    if pairs and all(len(row) == 2 and all(map(FILE_NAME.fullmatch, row)) for row in pairs):
        return "list of sources and targets (HCopy)"
    if len(text.fields) == 1 or RANGE.search(text.first):
        return "script file (SCP)" if re.search(r"[/\\=.]", text.first) else "list of names"
    if len(text.filled) == 1 and len(text.fields) == 2 and text.fields[1] in ("left-to-right", "any-order"):
        return "silence of a decoding graph"
    if len(text.fields) > 1 and all(len(line.split()) > 1 or "[]" in line for line in text.filled):
        return "pronunciation dictionary"
    raise FormatError(f"{text.path}: {text.first[:40]!r} on the first line; expected a file that Argonaut reads")


def _editing_commands() -> set[str]:
    from acoustic.descriptions.mel.registry import commands

    return {name.lower() for command in commands() for name in (command.name, *command.aliases)}


def _node_names() -> set[str]:
    from acoustic.nodes.registry import registered_nodes

    return {name.lower() for node in registered_nodes() for name in (node.type_name, *node.aliases)}


def editing_script(path: str) -> Figures:
    known_commands = _editing_commands()
    calls = [match.group(1) for line in read_lines(path) if (match := CALL.match(strip_comment(line)))]
    commands = Counter(call for call in calls if call.lower() in known_commands)
    return [("commands", ", ".join(f"{count} {name}" for name, count in commands.items()))]
