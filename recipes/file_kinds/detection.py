"""Tells what a file is, from its first bytes or its text, and describes it.

Each reader has a function that sums a file up; SUMMARIES names it for each kind.
"""

import codecs
import re
import struct
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

from readers.common.audio_format import audio_format
from readers.common.report import Figures
from readers.errors import FormatError
from readers.htk.parameter_file import WAVEFORM, read_htk_header
from recipes.file_kinds import networks
from recipes.file_kinds.text_kinds import Text, text_kind

MAX_SAFETENSORS_HEADER = 100_000_000  # bytes; limit of the format
MAX_HEAD = 1 << 16  # bytes; the kind of a text file is detected from this many
OPENFST = struct.pack("<i", 2125659606)
INDEXED = re.compile(rb'ARGOREC\n.{12}\{"kind":"([\w -]+)"', re.DOTALL)
# The first bytes of binary files.  ONNX's ModelProto begins with ir_version (field 1, a small number) and the tag of
# one of the fields 2 to 8.
FIRST_BYTES = {
    "ELAN annotation file": rb"(\xef\xbb\xbf)?\s*(<\?xml[^>]*>\s*)?(<!--(?>[\s\S]*?-->)\s*)*+<ANNOTATION_DOCUMENT\b",
    "TextGrid of Praat": codecs.BOM_UTF16_LE + b"|" + codecs.BOM_UTF16_BE,  # Praat writes UTF-16
    "compiled decoding graph": rb"ARGONDG\n",
    "pronunciation model": rb"ARGONG2P",
    "file of n-gram counts": rb"ARGONGC\n",
    "mapped language model": rb"ARGONLM\n",
    "search tables of a bundle": rb"ARGONST\n",
    "record cache of a reader": rb"ARGORECS",
    "archive of training examples": rb"ARGOEGS\n",  # of an earlier version
    "model of dbn.exe": rb"DBN[\n\0]",
    "n-gram model of CMU Sphinx": rb"Trie Language Model|[\s\S]{4}Darpa Trigram LM\0",
    "picture (PNG)": rb"\x89PNG\r\n\x1a\n",
    "picture (JPEG)": rb"\xff\xd8\xff",
    "picture (GIF)": rb"GIF8",
    "picture (PDF)": rb"%PDF-",
    "picture (SVG)": rb"<svg",
    "Kaldi decision tree": rb"(\0B)?ContextDependency ",
    "Kaldi i-vector extractor": rb"(\0B)?<IvectorExtractor> ",
    "Kaldi mixture of Gaussians": rb"(\0B)?<DiagGMM> ",
    "Kaldi model": rb"(\0B)?<TransitionModel> ",
    "OpenFst binary": re.escape(OPENFST),
    "Kaldi archive of lattices or graphs": rb"\S{1,4096} (\0B)?" + re.escape(OPENFST),
    "ONNX model": rb"\x08[\x03-\x1f][\x12\x1a\x22\x28\x32\x3a\x42]",
    "Kaldi archive of alignments": rb"\S{1,4096} \0B\x04",
    "Kaldi archive of features": rb"\S{1,4096} \0B",
}
# The function that sums up a file of a kind; kinds that are missing have no figures.
SUMMARIES = {
    "ARPA language model": "readers.language.arpa:summary",
    "ELAN annotation file": "readers.results.elan.document:summary",
    "HCopy configuration": "readers.config.hcopy:summary",
    "HMM list": "readers.htk.hmm_list:summary",
    "HMM state transitions": "readers.tables.hmm_tables:transitions_summary",
    "HTK model definitions (MMF)": "readers.htk.mmf:summary",
    "HTK parameter file": "recipes.file_kinds.sound:features",
    "JSON": "recipes.file_kinds.tables:json_object",
    "Kaldi archive of alignments": "readers.kaldi.alignments:summary",
    "Kaldi archive of alignments, as text": "readers.kaldi.alignments:summary",
    "Kaldi archive of features": "readers.kaldi.ark:ark_summary",
    "Kaldi archive of features, as text": "readers.kaldi.ark:ark_summary",
    "Kaldi lattices, as text": "recipes.file_kinds.tables:kaldi_lattices",
    "Kaldi decision tree": "readers.kaldi.hmm.tree:summary",
    "Kaldi i-vector extractor": "readers.kaldi.ivectors:extractor_summary",
    "Kaldi mixture of Gaussians": "readers.kaldi.ivectors:mixture_summary",
    "Kaldi model": "readers.kaldi.nnet3.nnet:summary",
    "Kaldi script file (scp)": "readers.kaldi.ark:ark_scp_summary",
    "ONNX model": "recipes.file_kinds.foreign:onnx",
    "OpenFst binary": "recipes.file_kinds.foreign:openfst",
    "SLF lattice": "recipes.file_kinds.tables:lattice",
    "TIMIT label file": "readers.tables.timit:summary",
    "TextGrid of Praat": "readers.results.textgrid:summary",
    "acceptor in AT&T text": "recipes.file_kinds.tables:acceptor",
    "acceptor in AT&T text (a decoding graph)": "recipes.file_kinds.tables:acceptor",
    "archive of lattices": "readers.sources.lattices.lattice_archive:summary",
    "archive of training examples": "readers.sources.examples.example_archive:summary",
    "audio": "recipes.file_kinds.sound:audio",
    "bundle": "decoder.recognizer.assembly:summary",
    "checkpoint of a training": "recipes.file_kinds.networks:checkpoint",
    "checkpoint of an outer iteration": "recipes.file_kinds.networks:checkpoint",
    "cntk configuration": "readers.config.config:summary",
    "compiled decoding graph": "decoder.graph.graph_file:summary",
    "confusions of a score": "decoder.scoring.report:summary",
    "consensus networks": "readers.results.nbest:consensus_summary",
    "decision trees or script of HHEd": "recipes.file_kinds.tables:trees_or_script",
    "file of n-gram counts": "decoder.lm.counting.counts_file:summary",
    "history of a training": "acoustic.training.reporting.log:history_summary",
    "history of outer iterations": "acoustic.training.reporting.log:iterations_summary",
    "i-vector model": "features.ivectors.model:summary",
    "index of lattices": "recipes.file_kinds.tables:index",
    "list of names": "recipes.file_kinds.lists:names",
    "list of sources and targets (HCopy)": "recipes.file_kinds.lists:pairs",
    "look-ahead scores of a graph": "readers.tables.hmm_tables:lookahead_summary",
    "map of graph states to network outputs": "readers.tables.hmm_tables:cntkmap_summary",
    "mapped language model": "decoder.lm.mapped_model:summary",
    "mark of a recipe's stage": "recipes.file_kinds.tables:json_object",
    "master label file": "readers.htk.mlf:summary",
    "mixture of language models": "recipes.file_kinds.tables:numbers",
    "model editing script (MEL)": "recipes.file_kinds.text_kinds:editing_script",
    "model of dbn.exe": "readers.tables.dbn:summary",
    "n-best lists": "readers.results.nbest:summary",
    "n-gram model of CMU Sphinx": "recipes.file_kinds.foreign:sphinx_ngrams",
    "names with a number each": "recipes.file_kinds.tables:numbers",
    "network description (NDL)": "acoustic.descriptions.ndl.files:summary",
    "output of a job": "recipes.file_kinds.networks:checkpoint",
    "output words of a graph": "recipes.file_kinds.tables:outputs",
    "picture (PNG)": "recipes.file_kinds.foreign:png",
    "pronunciation dictionary": "readers.dictionaries.forms:summary",
    "pronunciation model": "decoder.g2p.model:summary",
    "record cache of a reader": "readers.sources.records.record_cache:summary",
    "record of features": "readers.config.side_files:summary",
    "records as text (UCI)": "readers.sources.records.uci:summary",
    "records in JSON, one per line": "recipes.file_kinds.tables:json_lines",
    "reference with times (STM)": "readers.results.timed_words:stm_summary",
    "report of a run": "readers.common.report:summary",
    "safetensors model": "recipes.file_kinds.networks:model",
    "script file (SCP)": "recipes.file_kinds.lists:scp",
    "search options that a recipe tried": "recipes.file_kinds.tables:tuning",
    "search tables of a bundle": "decoder.search.table_file:summary",
    "silence of a decoding graph": "readers.tables.hmm_tables:silence_summary",
    "speakers of utterances": "readers.corpora.directory:speakers_summary",
    "states of models (state map)": "readers.tables.hmm_tables:state_map_summary",
    "states tied to senones": "readers.tables.hmm_tables:tied_summary",
    "subtitles": "readers.results.timed_words:subtitles_summary",
    "symbol table": "recipes.file_kinds.tables:symbols",
    "table of contents of lattices": "readers.sources.lattices.lattice_contents:summary",
    "transcripts": "readers.results.trn:summary",
    "vocabulary with classes": "readers.language.vocabulary:summary",
    "ways through HMMs (topology)": "readers.tables.hmm_tables:topology_summary",
    "words with counts": "recipes.file_kinds.tables:counts",
    "words with times (CTM)": "readers.results.timed_words:ctm_summary",
    "words with times (JSON)": "recipes.file_kinds.tables:json_words",
}


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
    kind = kind_of(path)
    name = SUMMARIES.get(kind, "readers.results.indexed_archive:summary" if kind.startswith("archive of ") else "")
    module, _, function = name.partition(":")
    figures: Figures = getattr(import_module(module), function)(path) if module else []
    # Figures whose names begin with + are shown only with -v.
    return FileDescription(kind, [(name.lstrip("+"), value) for name, value in figures if verbose or name[0] != "+"])


def kind_of(path: str) -> str:
    """Return the kind of a file.  Raises FormatError for an unknown one."""
    from decoder.recognizer.bundle import is_bundle

    if is_bundle(path):
        return "bundle"
    if Path(path).exists() and not Path(path).is_file() and not Path(path).is_dir():  # it could be read only once
        raise FormatError(f"{path}: a device or a pipe; expected a file that Argonaut reads")
    with Path(path).open("rb") as file:
        head = file.read(MAX_HEAD)
    if not head:
        raise FormatError(f"{path}: empty file; expected a file that Argonaut reads")
    return _binary_kind(path, head) or text_kind(Text(path))


def _binary_kind(path: str, head: bytes) -> str | None:
    if audio_format(head):
        return "audio"
    size = Path(path).stat().st_size
    if len(head) > 8 and head[8:9] == b"{":
        header = 8 + int.from_bytes(head[:8], "little")
        if header <= size:
            return networks.safetensors_kind(path)
        if header <= MAX_SAFETENSORS_HEADER:
            raise FormatError(f"{path}: truncated, {size} bytes; expected a safetensors file of more than {header}")
    if (archive := INDEXED.match(head)) is not None:
        return f"archive of {archive[1].decode()}"
    for kind, first_bytes in FIRST_BYTES.items():
        if re.match(first_bytes, head):
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
    return "audio" if waveform else "HTK parameter file"
