"""What decoding graphs, lattices and tables of HMM states hold."""

from recipes.cli.file_kinds.figures import Figures, all_finite


def graph(path: str) -> Figures:
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


def acceptor(path: str) -> Figures:
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


def lattice(path: str) -> Figures:
    from readers.slf import NULL_WORD, read_slf

    lattice = read_slf(path)
    words = set(lattice.word) - {NULL_WORD}
    return [
        ("utterance", lattice.utterance or "not named"),
        ("nodes", lattice.num_nodes),
        ("links", lattice.num_links),
        ("words", f"{len(words)} different"),
        ("ends at", f"{lattice.time.max():.2f} s" if lattice.num_nodes and all_finite(lattice.time) else "no times"),
        *(sorted(lattice.header.items())),
    ]


def transitions(path: str) -> Figures:
    import math

    from readers.hmm_tables import read_transitions

    stay = [math.exp(ln_self) for ln_self, _ in read_transitions(path).values()]
    frames = [1 / (1 - p) for p in stay if p < 1]
    figures: Figures = [("states", len(stay)), ("staying", f"probability {min(stay):.3f} to {max(stay):.3f}")]
    return figures + ([("duration", f"{min(frames):.1f} to {max(frames):.1f} frames expected")] if frames else [])


def cntkmap(path: str) -> Figures:
    from readers.hmm_tables import read_cntkmap

    indices = read_cntkmap(path)
    return [("states", len(indices)), ("outputs", f"{min(indices.values())} to {max(indices.values())}")]


def tied(path: str) -> Figures:
    from readers.hmm_tables import read_tied_states

    tied = read_tied_states(path)
    return [("states", len(tied)), ("senones", len(set(tied.values())))]


def silence(path: str) -> Figures:
    from readers.hmm_tables import read_silence

    model, topology = read_silence(path)
    return [("model", model), ("topology", topology)]
