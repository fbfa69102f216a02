"""Say what files are and give their main figures: features, audio, SCP, MLF, dictionary, ARPA, graph, lattice, model.

worked example:
  argonaut info feat/cen1-fash-b.fbank lm.arpa
prints
  feat/cen1-fash-b.fbank: HTK parameter file
    kind       FBANK_D_A_Z
    frames     345 (3.45 s, one every 10 ms)
    values     72 per frame
    ...
  lm.arpa: ARPA language model
    order      2
    1-grams    107
    2-grams    1

The content decides what a file is, not its name.  Exit status 1 when some files could not be read, 2 when none could.
"""

import argparse
import json
import re
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from readers.errors import ArgonautError, FormatError

Figures = list[tuple[str, object]]
ARC = re.compile(r"\d+\s+\d+\s+\S+(\s+[-+.\deE]+)?")
MAX_HEAD = 1 << 16  # bytes that decide what a text file is


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", nargs="+", metavar="FILE", help="any file that the toolkit reads or writes")


def run(arguments: argparse.Namespace) -> int:
    from recipes.cli.console import one_line

    num_failed = 0
    for path in arguments.files:
        try:
            title, figures = describe(path, arguments.verbose)
        except (ArgonautError, OSError) as fault:
            num_failed += 1
            print(f"error: {one_line(fault)}", file=sys.stderr)
            continue
        print(f"{path}: {title}")
        width = max((len(name) for name, _ in figures), default=0)
        for name, value in figures:
            print(f"  {name:{max(width, 10)}} {value}")
    return 0 if not num_failed else 1 if num_failed < len(arguments.files) else 2


def describe(path: str, verbose: int = 0) -> tuple[str, Figures]:
    """(what the file is, its figures); raises FormatError for a file that is nothing known."""
    with Path(path).open("rb") as file:
        head = file.read(MAX_HEAD)
    if not head:
        raise FormatError(f"{path}: empty file; expected a file that the toolkit reads")
    kind, describer = _binary_kind(path, head) or _text_kind(path)
    # Names that begin with + are for -v alone.
    figures = [(name.lstrip("+"), value) for name, value in describer(path) if verbose or not name.startswith("+")]
    return kind, figures


def _binary_kind(path: str, head: bytes) -> tuple[str, Callable] | None:
    from decoder.image_file import MAGIC
    from readers.audio import SNDFILE_MAGIC, SPHERE_MAGIC
    from readers.htk import WAVEFORM, read_htk_header

    if head[:4] in SNDFILE_MAGIC or head[:4] == SPHERE_MAGIC:
        return "audio", _audio
    if head.startswith(MAGIC):
        return "compiled decoding graph", _graph
    size = Path(path).stat().st_size
    if len(head) > 8 and head[8:9] == b"{" and 8 + int.from_bytes(head[:8], "little") <= size:
        return "safetensors model", _model
    if b"\0" not in head[:12]:  # the frames of an HTK header are never that many
        return None
    try:
        waveform = read_htk_header(path).base_kind == WAVEFORM
    except FormatError as fault:
        if head.startswith(b"\x1f\x8b"):
            return None
        raise FormatError(
            f"{path}: binary file of no known format; expected HTK features, audio, a model or a graph ({fault})"
        ) from fault
    return ("audio", _audio) if waveform else ("HTK parameter file", _features)


def _text_kind(path: str) -> tuple[str, Callable]:
    from readers.text import read_lines

    lines = [line.strip() for line in read_lines(path)]
    filled = [line for line in lines if line]
    first = filled[0] if filled else ""
    fields = first.split()
    if first == "#!MLF!#":
        return "master label file", _mlf
    if "\\data\\" in lines:
        return "ARPA language model", _arpa
    if first.startswith("VERSION=") or any(re.match(r"(N|NODES)=\d+\s+(L|LINKS)=\d+", line) for line in filled[:20]):
        return "SLF lattice", _lattice
    if first.startswith("[") and len(fields) == 3:
        return "HMM state transitions", _transitions
    if first.startswith("[") and len(fields) == 2:
        return "map of graph states to network outputs", _cntkmap
    if Path(path).suffix.lower() in (".phn", ".wrd"):
        return "TIMIT label file", _segments
    if ARC.fullmatch(first):
        return "acceptor in AT&T text (a decoding graph)", _acceptor
    if filled and all(re.search(r"\([^()\s]+\)$", line) for line in filled):
        return "transcripts", _transcripts
    if len(fields) == 1 or re.search(r"=\S+\[\d+,\d+\]$", first):
        looks_like_path = re.search(r"[/\\=.]", first)
        return ("script file (SCP)", _scp) if looks_like_path else ("list of names", _list)
    if len(fields) > 1 and all(len(line.split()) > 1 or "[]" in line for line in filled):
        return "pronunciation dictionary", _dictionary
    raise FormatError(f"{path}: {first[:40]!r} on the first line; expected a file that the toolkit reads")


def _seconds(ticks: int) -> str:
    return f"{ticks * 1e-7:.2f} s"


def _features(path: str) -> Figures:
    from readers.htk import HAS_C, HAS_K, kind_name, read_htk, read_htk_header

    header = read_htk_header(path)
    frames = read_htk(path).frames
    duration = _seconds(header.num_frames * header.period)
    figures: Figures = [
        ("kind", kind_name(header.kind)),
        ("frames", f"{header.num_frames} ({duration}, one every {header.period / 1e4:g} ms)"),
        ("values", f"{header.dim} per frame" + (", compressed to 16 bits" if header.kind & HAS_C else "")),
        ("byte order", "big-endian" if header.byte_order == ">" else "little-endian"),
        ("range", f"{frames.min():g} to {frames.max():g}, mean {frames.mean(dtype='f8'):g}"),
    ]
    if header.kind & HAS_K:
        try:
            read_htk(path, verify=True)
            figures.append(("checksum", "agrees with the data"))
        except FormatError as fault:
            figures.append(("checksum", f"DOES NOT AGREE: {str(fault).removeprefix(f'{path}: ')}"))
    if not _all_finite(frames):
        figures.append(("note", "some values are infinite or not numbers"))
    return figures


def _all_finite(values) -> bool:
    import numpy as np

    return bool(np.isfinite(values).all())


def _audio(path: str) -> Figures:
    from readers.audio import read_audio

    samples, rate = read_audio(path)
    return [
        ("samples", f"{len(samples)} ({len(samples) / rate:.2f} s)"),
        ("rate", f"{rate} Hz"),
        ("range", f"{samples.min():g} to {samples.max():g} of 16 bits"),
    ]


def _mlf(path: str) -> Figures:
    from readers.mlf import read_mlf

    mlf = read_mlf(path)
    labels = [label for entry in mlf.values() for label in entry]
    names = Counter(label.name for label in labels)
    ends = [entry[-1].end for entry in mlf.values() if entry and entry[-1].end is not None]
    levels = 1 + max((len(label.aux) for label in labels), default=0)
    figures: Figures = [
        ("entries", f"{len(mlf)}" + (f" and {len(mlf.patterns)} patterns" if mlf.patterns else "")),
        ("labels", f"{len(labels)}, {len(names)} different"),
        ("levels", levels),
        ("times", f"{_seconds(sum(ends))} in {len(ends)} entries" if ends else "none"),
        ("scores", "yes" if any(label.score is not None for label in labels) else "no"),
        ("frequent", ", ".join(f"{name} {count}" for name, count in names.most_common(5))),
    ]
    empty = sum(not entry for entry in mlf.values())
    return figures + ([("empty", f"{empty} entries without labels")] if empty else [])


def _scp(path: str) -> Figures:
    from readers.htk import kind_name, read_htk_header
    from readers.scp import read_scp

    entries = read_scp(path)
    files = {entry.path for entry in entries}
    missing = sum(not Path(file).is_file() for file in files)
    keys = Counter(entry.key for entry in entries)
    frames = [entry.num_frames for entry in entries if entry.num_frames is not None]
    figures: Figures = [
        ("entries", len(entries)),
        ("files", f"{len(files)}" + (f", {missing} of them not there" if missing else "")),
        ("ranges", f"{len(frames)} entries give one, {sum(frames)} frames" if frames else "none"),
        ("first key", entries[0].key),
    ]
    repeated = sum(count > 1 for count in keys.values())
    if repeated:
        figures.append(("repeated", f"{repeated} keys come more than once"))
    if Path(entries[0].path).is_file():
        try:
            header = read_htk_header(entries[0].path)
            figures.append(("first file", f"{kind_name(header.kind)}, {header.dim} values per frame"))
        except FormatError:
            figures.append(("first file", "no HTK parameter file"))
    return figures


def _list(path: str) -> Figures:
    from readers.scp import read_list

    names = read_list(path)
    return [("names", f"{len(names)}, {len(set(names))} different"), ("first", names[0]), ("last", names[-1])]


def _transcripts(path: str) -> Figures:
    from readers.trn import read_trn

    transcripts = read_trn(path)
    words = Counter(word for entry in transcripts.values() for word in entry)
    return [("utterances", len(transcripts)), ("words", f"{sum(words.values())}, {len(words)} different")]


def _dictionary(path: str) -> Figures:
    from readers.dictionary import read_dictionary

    entries = read_dictionary(path)
    phones = {phone for entry in entries for phone in entry.phones}
    words = Counter(entry.word for entry in entries)
    return [
        ("words", f"{len(words)}, {sum(n > 1 for n in words.values())} of them with several pronunciations"),
        ("entries", f"{len(entries)} pronunciations"),
        ("phones", f"{len(phones)}: {' '.join(sorted(phones)[:12])}" + (" ..." if len(phones) > 12 else "")),
        ("probability", f"given for {sum(entry.probability is not None for entry in entries)}"),
        ("output", f"given for {sum(entry.output is not None for entry in entries)}"),
    ]


def _arpa(path: str) -> Figures:
    from readers.arpa import read_arpa

    arpa = read_arpa(path)
    figures: Figures = [("order", arpa.order)]
    figures += [(f"{k}-grams", len(order)) for k, order in enumerate(arpa.orders, 1)]
    special = [word for word in ("<s>", "</s>", "<UNK>", "<unk>") if word in set(arpa.vocabulary)]
    return [*figures, ("marks", " ".join(special) or "no <s>, </s> or <UNK>")]


def _graph(path: str) -> Figures:
    import numpy as np

    from decoder.image_file import load_graph

    graph = load_graph(path)
    final = int(np.isfinite(graph.arrays.final_cost).sum())
    return [
        ("states", f"{graph.num_states}, {final} of them final, start {graph.start}"),
        ("arcs", f"{len(graph.arrays.emitting_cost)} of HMM states, {len(graph.arrays.word_cost)} of words"),
        ("positions", f"{graph.num_positions} (an HMM state before the graph state it leads to)"),
        ("labels", f"{len(graph.states)} HMM states of {len(graph.models)} models and {len(graph.words)} words"),
        ("+models", " ".join(graph.models)),
    ]


def _acceptor(path: str) -> Figures:
    from readers.att import read_acceptor
    from readers.hmm_tables import is_bracketed

    graph = read_acceptor(path)
    used = [graph.symbols[i] for i in set(graph.label.tolist())]
    states = sum(is_bracketed(name) for name in used)
    epsilons = int((graph.label == 0).sum())
    return [
        ("states", f"{graph.num_states}, {len(graph.final)} of them final, start {graph.start}"),
        ("arcs", f"{graph.num_arcs}, {epsilons} of them epsilon"),
        ("labels", f"{states} HMM states and {len(used) - states - bool(epsilons)} words"),
    ]


def _lattice(path: str) -> Figures:
    from readers.slf import NULL_WORD, read_slf

    lattice = read_slf(path)
    words = set(lattice.word) - {NULL_WORD}
    return [
        ("utterance", lattice.utterance or "not named"),
        ("nodes", lattice.num_nodes),
        ("links", lattice.num_links),
        ("words", f"{len(words)} different"),
        ("ends at", f"{lattice.time.max():.2f} s" if lattice.num_nodes and _all_finite(lattice.time) else "no times"),
        *(sorted(lattice.header.items())),
    ]


def _transitions(path: str) -> Figures:
    import math

    from readers.hmm_tables import read_transitions

    stay = [math.exp(ln_self) for ln_self, _ in read_transitions(path).values()]
    frames = [1 / (1 - p) for p in stay if p < 1]
    figures: Figures = [("states", len(stay)), ("staying", f"probability {min(stay):.3f} to {max(stay):.3f}")]
    return figures + ([("duration", f"{min(frames):.1f} to {max(frames):.1f} frames expected")] if frames else [])


def _cntkmap(path: str) -> Figures:
    from readers.hmm_tables import read_cntkmap

    indices = read_cntkmap(path)
    return [("states", len(indices)), ("outputs", f"{min(indices.values())} to {max(indices.values())}")]


def _segments(path: str) -> Figures:
    from readers.timit import read_segments

    segments = read_segments(path)
    return [("segments", len(segments)), ("ends at", f"sample {max(segment.end for segment in segments)}")]


def _model(path: str) -> Figures:
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="numpy") as file:
            parts = [file.get_slice(name) for name in file.keys()]  # noqa: SIM118 (no mapping)
            shapes = {name: tuple(part.get_shape()) for name, part in zip(file.keys(), parts)}
            types = Counter(str(part.get_dtype()) for part in parts)
            metadata = file.metadata() or {}
    except SafetensorError as fault:
        raise FormatError(f"{path}: {fault}; expected a whole safetensors file") from fault
    values = 0
    for shape in shapes.values():
        size = 1
        for length in shape:
            size *= length
        values += size
    figures: Figures = [
        ("tensors", f"{len(shapes)}, {values} values, {', '.join(f'{n} {t}' for t, n in types.items())}"),
    ]
    figures += _graph_figures(metadata.get("argonaut", ""))
    figures += [(f"+{name}", " x ".join(map(str, shape)) or "scalar") for name, shape in shapes.items()]
    return figures


def _graph_figures(text: str) -> Figures:
    """Figures of the network that a model's metadata describes; none for a file that holds only tensors."""
    try:
        graph = json.loads(text)
    except json.JSONDecodeError:
        return [("network", "none: tensors only")]
    if not isinstance(graph, dict):
        return [("network", "none: tensors only")]
    nodes = graph.get("nodes", [])
    figures: Figures = [("format", f"{graph.get('format')} {graph.get('version', '')}".strip())]
    if nodes:
        types = Counter(node.get("type") for node in nodes)
        figures.append(("nodes", f"{len(nodes)}: " + ", ".join(f"{n} {t}" for t, n in types.most_common(6))))
    for name in ("precision", "features", "labels", "criteria", "evaluations", "outputs"):
        if graph.get(name):
            value = graph[name]
            figures.append((name, " ".join(map(str, value)) if isinstance(value, list) else value))
    return figures
