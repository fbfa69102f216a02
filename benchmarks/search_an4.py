"""Search alone on AN4 against kaldi-decoder's FasterDecoder: same likelihoods, same language model.

    python -m benchmarks.search_an4 [exp/an4] [--rounds 5] [--picture search-an4.png]

uses the output of `argonaut recipe an4 --out exp/an4`: model, features, graph, language model, and the options chosen
on the development set.  The peer searches an HCLG as Kaldi builds it (benchmarks/kaldi_graph.py), with back-off arcs or
without epsilons; ours has two word-end beams and no slack.  On either side the faster of the two is compared.  All run
on one thread, in turns, over the same beams; network outputs are computed beforehand.  Times are compared at equal word
errors and at equal beams, see benchmarks/search_sweep.py.
"""

import argparse
import os
import sys
from pathlib import Path

from benchmarks import ONE_THREAD

BEAMS = (6, 7, 7.5, 8, 8.5, 9, 9.5, 10, 11, 12, 13)
FRACTIONS = (0.7, 1.0)  # -word_end_beam_frac
NEEDED = (
    "model/an4.dnn", "lists/test.scp", "labels/test.words.mlf", "graph/trained/graph.dg", "graph/trained/cntkmap",
    "lm/trained.arpa", "tune/trained.json", "stages/lists.done",
)  # fmt: skip


def main(argv: list[str] | None = None) -> int:
    """Print a table of both, and `RATIO search-an4 value`."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.search_an4", description=__doc__)
    parser.add_argument("directory", nargs="?", type=Path, default=Path("exp/an4"))
    parser.add_argument("--rounds", type=int, default=5, help="of which the fastest counts (default 5)")
    parser.add_argument("--picture", type=Path, metavar="PNG")
    arguments = parser.parse_args(argv)
    try:
        import kaldi_decoder  # noqa: F401
    except ImportError:
        print(
            "search-an4: kaldi-decoder is not installed; pip install '.[bench]' in the project's directory",
            file=sys.stderr,
        )
        return 2
    os.environ.update(ONE_THREAD)
    from benchmarks import search_sweep

    if not is_complete(arguments.directory):
        return 2
    decoder, options, scores, references = open_task(arguments.directory)
    acweight, words = decoder.options.acweight, decoder.graph.words
    choices = [{"beam": beam} for beam in BEAMS]
    searches = [
        search_sweep.our_search(
            f"ours, word ends {part:g}", decoder.with_options(word_end_beam_frac=part, slack_decay=0.0), choices
        )
        for part in FRACTIONS
    ]
    for name, fst in peer_graphs(decoder, arguments.directory).items():
        searches.append(search_sweep.peer_search(f"peer, {name}", fst, words, acweight, choices))
    points = search_sweep.sweep(searches, scores, references, arguments.rounds)
    print(", ".join(f"{name} {value:g}" for name, value in options.items()))
    print("\n".join(search_sweep.table(points)))
    print("\n".join(search_sweep.compare("search-an4", points)))
    if arguments.picture:
        search_sweep.draw(points, "AN4, 4-gram", arguments.picture)
    return 0


def is_complete(directory: Path) -> bool:
    """Whether the recipe has made all files that are needed; prints which are missing."""
    missing = [name for name in NEEDED if not (directory / name).exists()]
    if missing:
        print(
            f"search-an4: {directory}: no {', '.join(missing)}; run argonaut recipe an4 --data DIR --out {directory}",
            file=sys.stderr,
        )
    return not missing


def open_task(directory: Path) -> tuple:
    """(decoder, its tuned options, utterance -> log-likelihoods (K, T), references)."""
    from decoder.scoring.words import read_words
    from recipes.an4.recipe import WINDOW
    from recipes.decoding import open_decoder, read_choice, score_utterances

    options = read_choice(directory / "tune" / "trained.json")
    decoder = open_decoder(directory / "graph" / "trained", directory / "lm" / "trained.arpa").with_options(**options)
    scores = score_utterances(directory / "model" / "an4.dnn", directory / "lists" / "test.scp", WINDOW)
    return decoder, options, scores, read_words(directory / "labels" / "test.words.mlf")


def peer_graphs(decoder, directory: Path) -> dict:
    """name -> HCLG as a ConstFst; directory: output of the recipe."""
    import json

    import kaldifst

    from benchmarks.kaldi_graph import build_hclg
    from readers.htk.dictionary import read_dictionary
    from readers.tables.hmm_tables import read_state_map, read_transitions
    from recipes.an4.corpus import DICTIONARY

    data = json.loads((directory / "stages" / "lists.done").read_text(encoding="utf-8"))["settings"]["data"]
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
    for name, fst in (("back-off", hclg), ("no epsilons", without)):
        kaldifst.arcsort(fst, "ilabel")
        result[name] = kaldifst.StdConstFst(fst)
    return result


if __name__ == "__main__":
    sys.exit(main())
