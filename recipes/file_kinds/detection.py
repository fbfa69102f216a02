"""Detects what a file is, from its content, and describes it."""

import codecs
import re
from pathlib import Path
from typing import NamedTuple

from readers.errors import FormatError
from readers.htk.storage.label_fields import HEADER
from readers.tables.hmm_tables import is_bracketed
from recipes.file_kinds import (
    archives,
    bundles,
    configs,
    foreign,
    graphs,
    labels,
    language,
    models,
    networks,
    runs,
    sound,
    tables,
    words,
)
from recipes.file_kinds.figures import Figures, Kind

ARC = re.compile(r"\d+\s+\d+\s+\S+(\s+[-+.\deE]+)?")
ENTRY_WITH_BLANKS = re.compile(r"[^\s=]+=(?:/|\.|\w:[/\\]).*\.\w+(?:\[\d+,\d+(?:,\d+)?\])?")  # of an SCP
RANGE = re.compile(r"=[^\s=]+\[\d+,\d+\]$")
SLF_SIZES = re.compile(r"(N|NODES)=\d+\s+(L|LINKS)=\d+")
SPEAKER_MAPS = ("speakers", "utt2spk")  # of argonaut import, of Kaldi
DBN_MAGIC = (b"DBN\n", b"DBN\0")
MAX_SAFETENSORS_HEADER = 100_000_000  # bytes; limit of the format
MAX_HEAD = 1 << 16  # bytes; the kind of a text file is detected from this many


class FileDescription(NamedTuple):
    """What a file is.

    Attributes
    ----------
    kind : str
        Such as "HTK parameter file".
    figures : list of (str, object)
        Names and values of its main figures.
    """

    kind: str
    figures: Figures

    def as_json(self, path: str) -> dict[str, object]:
        """Return an object with the path, the kind and all figures."""
        return {"file": path, "kind": self.kind} | dict(self.figures)


def describe_file(path: str | Path, verbose: int = 0) -> FileDescription:
    """Return what a file is, and its main figures.

    Parameters
    ----------
    path : path
        Any file that Argonaut reads or writes, or a bundle.
    verbose : int
        1 for all figures.

    Returns
    -------
    FileDescription

    Raises
    ------
    FormatError
        For a file of unknown kind, and for a damaged one.
    OSError

    Examples
    --------
    ``describe_file("en.argo").kind``
    """
    path = str(path)
    kind, describer = _bundle_kind(path) or _file_kind(path)
    # Figures whose names begin with + are shown only with -v.
    figures = [(name.lstrip("+"), value) for name, value in describer(path) if verbose or not name.startswith("+")]
    return FileDescription(kind, figures)


def _bundle_kind(path: str) -> Kind | None:
    from decoder.recognizer.bundle import is_bundle

    return ("bundle", bundles.bundle) if is_bundle(path) else None


def _file_kind(path: str) -> Kind:
    with Path(path).open("rb") as file:
        head = file.read(MAX_HEAD)
    if not head:
        raise FormatError(f"{path}: empty file; expected a file that Argonaut reads")
    return _binary_kind(path, head) or _text_kind(path)


def _binary_kind(path: str, head: bytes) -> Kind | None:
    from decoder.g2p.model import FORMAT as G2P_FORMAT
    from decoder.graph.graph_file import MAGIC
    from decoder.lm.mapped_model import FORMAT
    from decoder.search.table_file import FORMAT as SEARCH_TABLES
    from readers.common.audio_format import audio_format
    from readers.htk.parameter_file import WAVEFORM, read_htk_header

    if audio_format(head):
        return "audio", sound.audio
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return words.textgrid_in_utf16(path)
    if head.startswith(MAGIC):
        return "compiled decoding graph", graphs.graph
    if head.startswith(G2P_FORMAT.magic):
        return "pronunciation model", language.pronunciation_model
    if head.startswith(FORMAT.magic):
        return "mapped language model", language.mapped_model
    if head.startswith(SEARCH_TABLES.magic):
        return "search tables of a bundle", graphs.search_tables
    size = Path(path).stat().st_size
    if len(head) > 8 and head[8:9] == b"{":
        header = 8 + int.from_bytes(head[:8], "little")
        if header <= size:
            return networks.safetensors_kind(path)
        if header <= MAX_SAFETENSORS_HEADER:
            raise FormatError(f"{path}: truncated, {size} bytes; expected a safetensors file of more than {header}")
    if head.startswith(DBN_MAGIC):
        return "model of dbn.exe", networks.dbn
    kind = foreign.binary_kind(head) or archives.archive_kind(head)
    if kind:
        return kind
    if b"\0" not in head[:12]:  # the frame count of an HTK header always has a zero byte
        return None
    try:
        waveform = read_htk_header(path).base_kind == WAVEFORM
    except FormatError as fault:
        if head.startswith(b"\x1f\x8b"):
            return None
        if "truncated" in str(fault):
            raise
        raise FormatError(
            f"{path}: binary file of no known format; expected HTK features, audio, a model or a graph ({fault})"
        ) from fault
    return ("audio", sound.audio) if waveform else ("HTK parameter file", sound.features)


def _text_kind(path: str) -> Kind:
    from readers.dictionaries.forms import detect_form, read_dictionary_lines
    from readers.language.cmudict import COMMENT

    lines = [line.strip() for line in read_dictionary_lines(path)]
    filled = [line for line in lines if line]
    first = filled[0] if filled else ""
    fields = first.split()
    if first == HEADER:
        return "master label file", labels.mlf
    if first.startswith(COMMENT):
        return "pronunciation dictionary", language.dictionary
    kind = runs.run_kind(first) or (runs.json_kind(path) if first.startswith("{") else None)
    if kind:
        return kind
    if "\\data\\" in lines:
        return "ARPA language model", language.arpa
    if re.match(r"~[a-z]\b|<beginhmm>", first, re.IGNORECASE):
        return "HTK model definitions (MMF)", models.mmf
    if fields[:1] == ["QS"]:
        return "decision trees or script of HHEd", models.trees_or_script
    if first.startswith("VERSION=") or any(SLF_SIZES.match(line) for line in filled[:20]):
        return "SLF lattice", graphs.lattice
    if first.startswith("[") and len(fields) in (2, 3):
        return _bracket_kind(fields)
    if Path(path).suffix.lower() in (".phn", ".wrd"):
        return "TIMIT label file", labels.segments
    if any(len(line.split()) > 1 for line in filled) and all(map(ENTRY_WITH_BLANKS.fullmatch, filled)):
        return "script file (SCP)", labels.scp
    if Path(path).name in SPEAKER_MAPS and filled and all(len(line.split()) == 2 for line in filled):
        return "speakers of utterances", tables.speakers  # might also be a dictionary of words with one phone
    kind = words.text_kind(filled) or graphs.kaldi_kind(filled) or tables.vocabulary_kind(filled)
    if kind:
        return kind
    if foreign.GRAPHVIZ.match(first):
        return "picture (Graphviz)", foreign.nothing
    if ARC.fullmatch(first):
        states = any(is_bracketed(line.split()[2]) for line in filled if line.count("[") and len(line.split()) > 2)
        return "acceptor in AT&T text" + (" (a decoding graph)" if states else ""), graphs.acceptor
    if filled and all(re.search(r"(?:^|\s)\([^()\s]+\)$", line) for line in filled):
        return "transcripts", labels.transcripts
    if filled and all(len(line.split()) > 1 for line in filled) and detect_form(filled) == "cmu":
        return "pronunciation dictionary", language.dictionary  # else `minus(2) m ay n` would be a call of a network
    return (
        tables.text_kind(path, filled)
        or archives.text_kind(filled)
        or configs.configuration_kind(lines)
        or tables.pair_kind(filled)
        or _list_kind(path, filled)
    )


def _bracket_kind(fields: list[str]) -> Kind:
    """Return the kind of a table that begins with a state in brackets, given the fields of its first line."""
    if len(fields) == 3:
        return "HMM state transitions", graphs.transitions
    if fields[1].startswith("["):
        return "states tied to senones", graphs.tied
    return "map of graph states to network outputs", graphs.cntkmap


def _list_kind(path: str, filled: list[str]) -> Kind:
    """Return the kind of a file without special marks: a list or table of names.  Raises FormatError for other text."""
    first = filled[0] if filled else ""
    fields = first.split()
    if len(fields) == 1 or RANGE.search(first):
        looks_like_path = re.search(r"[/\\=.]", first)
        return ("script file (SCP)", labels.scp) if looks_like_path else ("list of names", labels.names)
    if len(filled) == 1 and len(fields) == 2 and fields[1] in ("left-to-right", "any-order"):
        return "silence of a decoding graph", graphs.silence
    if len(fields) > 1 and all(len(line.split()) > 1 or "[]" in line for line in filled):
        return "pronunciation dictionary", language.dictionary
    raise FormatError(f"{path}: {first[:40]!r} on the first line; expected a file that Argonaut reads")
