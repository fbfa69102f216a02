"""Figures of decoding graphs, lattices and tables of HMM states."""

import re
from itertools import pairwise

from readers.common.faults import counted
from readers.common.text import read_lines
from readers.errors import FormatError
from readers.tables.hmm_tables import is_bracketed, read_cntkmap, read_silence, read_tied_states, read_transitions
from recipes.file_kinds.figures import Figures, Kind, all_finite

# An arc of a Kaldi text lattice, compact or not, with comma-separated costs.
KALDI_LINK = re.compile(r"\d+\s+\d+\s+\S+(\s+\S+)?\s+[^\s,]+,[^\s,]+(,\S*)?")
# The same without costs: Kaldi omits them if they are zero.
KALDI_ARC = re.compile(r"\d+\s+\d+\s+[^\s,]+(\s+[^\s,]+)?(\s+[^\s,]*,[^\s,]*(,\S*)?)?")


def kaldi_kind(lines: list[str]) -> Kind | None:
    """Return (kind, function for its figures) given the non-empty lines of Kaldi lattices; None for other text."""
    if len(lines) > 1 and len(lines[0].split()) == 1 and KALDI_LINK.fullmatch(lines[1]):
        return "Kaldi lattices, as text", kaldi_lattices
    return None


def kaldi_lattices(path: str) -> Figures:
    lines = [line.strip() for line in read_lines(path)]
    names = [line for before, line in pairwise(["", *lines]) if line and not before]
    links = []
    for number, line in enumerate(lines, 1):
        if len(line.split()) > 2:
            if not KALDI_ARC.fullmatch(line):
                raise FormatError(f"{path}:{number}: {line[:60]!r}; expected `start end label costs`")
            links.append([field for field in line.split() if "," not in field])
    return [
        ("lattices", len(names)),
        ("links", f"{len(links)}, {'compact' if len(links[0]) == 3 else 'of transitions'}"),
        ("labels", f"{len({row[-1] for row in links})} different"),
        ("first key", names[0]),
    ]


def graph(path: str) -> Figures:
    import numpy as np

    from decoder.graph.graph_file import load_defaults, load_graph

    graph, defaults = load_graph(path, verify=True), load_defaults(path)
    options = ", ".join(f"{name} {value:g}" for name, value in defaults.options.items())
    models = " and ".join(defaults.tuned_with.values())
    final = int(np.isfinite(graph.arrays.final_cost).sum())
    return [
        ("states", f"{graph.num_states}, {final} of them final, start {graph.start}"),
        ("arcs", f"{len(graph.arrays.emitting_cost)} of HMM states, {len(graph.arrays.word_cost)} of words"),
        ("positions", f"{graph.num_positions} (an HMM state before the graph state it leads to)"),
        (
            "labels",
            f"{counted(len(graph.states), 'HMM state')} of {counted(len(graph.models), 'model')} and "
            f"{counted(len(graph.words), 'word')}",
        ),
        ("defaults", (options or "none") + (f", tuned with {models}" if models else "")),
        ("+models", " ".join(graph.models)),
    ]


def acceptor(path: str) -> Figures:
    from readers.language.att import read_acceptor

    graph = read_acceptor(path)
    used = [graph.symbols[i] for i in set(graph.label.tolist())]
    states = sum(is_bracketed(name) for name in used)
    epsilons = int((graph.label == 0).sum())
    return [
        ("states", f"{graph.num_states}, {len(graph.final)} of them final, start {graph.start}"),
        ("arcs", f"{graph.num_arcs}, {epsilons} of them epsilon"),
        ("labels", f"{counted(states, 'HMM state')} and {counted(len(used) - states - bool(epsilons), 'word')}"),
    ]


def lattice(path: str) -> Figures:
    from readers.htk.slf import SCALES, read_slf
    from readers.results.lattice import NULL_WORD

    lattice = read_slf(path)
    words = set(lattice.word) - {NULL_WORD}
    return [
        ("utterance", lattice.utterance or "not named"),
        ("nodes", lattice.num_nodes),
        ("links", lattice.num_links),
        ("words", f"{len(words)} different"),
        ("ends at", f"{lattice.time.max():.2f} s" if lattice.num_nodes and all_finite(lattice.time) else "no times"),
        *((key, f"{getattr(lattice, name):g}") for name, key in SCALES.items()),
        *sorted(lattice.header.items()),
    ]


def transitions(path: str) -> Figures:
    import math

    stay = [math.exp(ln_self) for ln_self, _ in read_transitions(path).values()]
    frames = [1 / (1 - p) for p in stay if p < 1]
    figures: Figures = [("states", len(stay)), ("staying", f"probability {min(stay):.3f} to {max(stay):.3f}")]
    return figures + ([("duration", f"{min(frames):.1f} to {max(frames):.1f} frames expected")] if frames else [])


def cntkmap(path: str) -> Figures:
    indices = read_cntkmap(path)
    return [("states", len(indices)), ("outputs", f"{min(indices.values())} to {max(indices.values())}")]


def tied(path: str) -> Figures:
    tied = read_tied_states(path)
    return [("states", len(tied)), ("senones", len(set(tied.values())))]


def silence(path: str) -> Figures:
    model, topology = read_silence(path)
    return [("model", model), ("topology", topology)]


def search_tables(path: str) -> Figures:
    """Figures of a file that only makes sense with its graph and language model."""
    from decoder.search.table_file import FORMAT

    found = FORMAT.read(path, verify=True)[1]
    sil_cost, lm_scale, word_penalty = found["settings"].tolist()
    return [
        ("words", len(found["word_lm"])),
        ("sets of next words", len(found["sets"]) // 4),
        ("made for", f"sil_cost {sil_cost:g}, lm_scale {lm_scale:g}, word_penalty {word_penalty:g}"),
    ]
