"""Search alone on AN4 against kaldi-decoder's FasterDecoder: same likelihoods, same language model, same beam.

    python -m benchmarks.search_an4 [exp/an4]

takes what `argonaut recipe an4 --out exp/an4` has made: model, features, graph, language model and the options that
were chosen on the development set.  The peer searches an HCLG as Kaldi builds it (benchmarks/kaldi_graph.py), and gets
the faster of two: with back-off arcs and without epsilons.  Both run on one thread, turn by turn; network outputs are
computed beforehand.
"""

import argparse
import os
import sys
import time
from pathlib import Path

ROUNDS = 5
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
NEEDED = (
    "model/an4.dnn", "lists/test.scp", "labels/test.words.mlf", "graph/trained/graph.dg", "graph/trained/cntkmap",
    "lm/trained.arpa", "tune/trained.json", "stages/graph.done",
)  # fmt: skip


def main(argv: list[str] | None = None) -> int:
    """Print microseconds per frame and error rates of both, and `RATIO search-an4 value`."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.search_an4", description=__doc__)
    parser.add_argument("directory", nargs="?", type=Path, default=Path("exp/an4"))
    directory = parser.parse_args(argv).directory
    missing = [name for name in NEEDED if not (directory / name).exists()]
    if missing:
        print(
            f"search-an4: {directory}: no {', '.join(missing)}; run argonaut recipe an4 --data DIR --out {directory}",
            file=sys.stderr,
        )
        return 2
    try:
        import kaldi_decoder
    except ImportError:
        print("search-an4: kaldi-decoder is not installed; pip install 'argonaut-asr[bench]'", file=sys.stderr)
        return 2
    os.environ.update(ONE_THREAD)
    from recipes.an4.run import WINDOW
    from recipes.cli.score import read_words
    from recipes.decoding import open_decoder, read_choice, score_utterances

    options = read_choice(directory / "tune" / "trained.json")
    decoder = open_decoder(directory / "graph" / "trained", directory / "lm" / "trained.arpa").with_options(**options)
    scores = score_utterances(directory / "model" / "an4.dnn", directory / "lists" / "test.scp", WINDOW)
    references = read_words(directory / "labels" / "test.words.mlf")
    compare(kaldi_decoder, decoder, scores, references, directory)
    return 0


def compare(kaldi_decoder, decoder, scores: dict, references: dict, directory: Path) -> None:
    import numpy as np

    from decoder.scoring import score

    graphs = peer_graphs(decoder, directory)
    words = decoder.graph.words
    acweight, beam = decoder.options.acweight, decoder.options.beam
    settings = kaldi_decoder.FasterDecoderOptions(beam=beam, max_active=decoder.options.max_tokens)
    # The peer looks up label i in column i - 1.
    likelihoods = {name: np.ascontiguousarray(acweight * matrix.T) for name, matrix in scores.items()}
    num_frames = sum(matrix.shape[1] for matrix in scores.values())

    def ours():
        return {name: decoder.decode(matrix).text for name, matrix in scores.items()}

    def theirs(fst):
        found = {}
        for name, matrix in likelihoods.items():
            peer = kaldi_decoder.FasterDecoder(fst, settings)
            peer.decode(kaldi_decoder.DecodableCtc(matrix))
            found[name] = best_words(peer, words)
        return found

    first = {name: timed(theirs, fst)[0] for name, fst in graphs.items()}
    ours()  # compiles
    peer_graph = min(first, key=first.get)
    times = np.array([(timed(ours)[0], timed(theirs, graphs[peer_graph])[0]) for _ in range(ROUNDS)])
    mine, peers = ours(), theirs(graphs[peer_graph])
    same = sum(mine[name] == peers[name] for name in mine)
    microseconds = np.median(times, axis=0) / num_frames * 1e6
    print(
        f"search-an4: {len(scores)} utterances, {num_frames} frames; acweight {acweight:g}, beam {beam:g}; "
        f"CPU time of one thread, median of {ROUNDS} rounds; {same} transcripts alike"
    )
    for name, figure, texts in (("ours", microseconds[0], mine), ("FasterDecoder", microseconds[1], peers)):
        rate = score(references, texts).total.word_error_rate
        print(f"  {name:13} {figure:7.2f} microseconds a frame, WER {rate:.1f}%")
    print(f"  the peer's graph: {peer_graph}")
    print(f"RATIO search-an4 {np.median(times[:, 1] / times[:, 0]):.2f}")


def timed(function, *arguments) -> tuple[float, object]:
    start = time.process_time()
    result = function(*arguments)
    return time.process_time() - start, result


def best_words(peer, words: list[str]) -> list[str]:
    import kaldifst

    reached, lattice = peer.get_best_path()
    if not reached:
        return []
    _, _, labels, _ = kaldifst.get_linear_symbol_sequence(lattice)
    return [words[label - 1] for label in labels]


def peer_graphs(decoder, directory: Path) -> dict:
    """name -> HCLG as a ConstFst; directory: that of the recipe."""
    import json

    import kaldifst

    from benchmarks.kaldi_graph import build_hclg
    from readers.dictionary import read_dictionary
    from readers.hmm_tables import read_state_map, read_transitions
    from recipes.an4.corpus import DICTIONARY

    data = json.loads((directory / "stages" / "graph.done").read_text(encoding="utf-8"))["settings"]["data"]
    graph = directory / "graph" / "trained"
    hclg = build_hclg(
        decoder,
        read_dictionary(Path(data) / DICTIONARY),
        read_state_map(graph / "state_map"),
        read_transitions(graph / "transitions"),
    )
    without = kaldifst.StdVectorFst(hclg)
    kaldifst.rmepsilon(without)
    result = {}
    for name, fst in (("with back-off arcs", hclg), ("without epsilons", without)):
        kaldifst.arcsort(fst, "ilabel")
        result[f"{name}, {fst.num_states} states"] = kaldifst.StdConstFst(fst)
    return result


if __name__ == "__main__":
    sys.exit(main())
