"""Hotwords: how many of the listed words are found, and what the others lose.

    python -m benchmarks.hotwords [exp/an4] [--names 20] [--list 100] [--beam X]

uses the output of `argonaut recipe an4 --out exp/an4`, or of `python -m benchmarks.stress --size 5k`.  Some rare words
of the test set become names that the language model hardly knows: their n-grams are removed, and their unigrams get the
probability 10^-6.  They are listed as hotwords, together with other words that do not occur in the test set and are
weakened in the same way.  For each score it prints the recall of the listed words, how often a listed word was found
where it was not spoken, the recall and the errors of the other words, and the time.  `original` is the recogniser
before its language model was changed; `5, not ahead` pays a bonus of 5 at word ends without seeing it ahead.
"""

import argparse
import os
import sys
import time
from collections import Counter
from pathlib import Path

from benchmarks import ONE_THREAD

SCORES = (0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0)
NOT_AHEAD = (5.0, 8.0)
WEAK_LOG10 = -6.0


def main(argv: list[str] | None = None) -> int:
    """Print a table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.hotwords", description=__doc__)
    parser.add_argument("directory", nargs="?", type=Path, default=Path("exp/an4"))
    parser.add_argument("--names", type=int, default=20, help="listed words that occur in the test set (default 20)")
    parser.add_argument("--list", type=int, default=100, help="listed words in all (default 100)")
    parser.add_argument("--beam", type=float, help="another beam than that of the recipe")
    arguments = parser.parse_args(argv)
    os.environ.update(ONE_THREAD)
    found = open_task(arguments.directory)
    if found is None:
        print(f"hotwords: {arguments.directory}: no output of recipe an4 or benchmarks.stress", file=sys.stderr)
        return 2
    decoder, model, scores, references = found
    if arguments.beam is not None:
        decoder = decoder.with_options(beam=arguments.beam)
    names, listed = choose(decoder, references, arguments.names, arguments.list)
    print(f"{len(scores)} utterances, {sum(map(len, references.values()))} words; {len(listed)} words listed, of which")
    print(f"{len(names)} are spoken: {' '.join(names)}")
    weak = with_weak_words(decoder, model, set(listed))
    runs = [("original", decoder), *((f"score {score:g}", weak.with_hotwords(listed, score)) for score in SCORES)]
    for score in NOT_AHEAD:
        runs.append((f"{score:g}, not ahead", weak.with_hotwords(listed, score)))
        runs[-1][1]._search_lm.second.ahead.states["first"] = 0
    print(
        f"{'':14} {'recall of listed':>17} {'false':>6} {'recall of others':>17} {'WER of others':>14} {'seconds':>8}"
    )
    for label, one in runs:
        one.decode(next(iter(scores.values()))[:, :50])  # compiles
        begin = time.thread_time()
        texts = {name: one.decode(matrix).text for name, matrix in scores.items()}
        print(f"{label:14} {figures(references, texts, set(listed))} {time.thread_time() - begin:8.1f}", flush=True)
    return 0


def open_task(directory: Path):
    """Return (decoder, ARPA file, utterance -> scores, utterance -> words), or None if there is no such output."""
    from benchmarks.stress_task import Task
    from decoder.scoring.words import read_words
    from recipes.decoding import open_decoder, read_choice, score_utterances

    if (directory / "tune" / "trained.json").exists():
        from recipes.an4.recipe import WINDOW

        lm, options = directory / "lm" / "trained.arpa", read_choice(directory / "tune" / "trained.json")
        decoder = open_decoder(directory / "graph" / "trained", lm).with_options(**options)
        scores = score_utterances(directory / "model" / "an4.dnn", directory / "lists" / "test.scp", WINDOW)
        return decoder, lm, scores, by_utterance(read_words(directory / "labels" / "test.words.mlf"), scores)
    if (directory / "speech" / "words.mlf").exists():
        from benchmarks.stress.run import SEARCH

        task = Task(directory)
        scores = task.scores()
        return (
            task.decoder().with_options(**SEARCH),
            directory / "words.arpa",
            scores,
            by_utterance(task.references(), scores),
        )
    return None


def by_utterance(words: dict[str, list[str]], scores: dict) -> dict[str, list[str]]:
    """Return the words under the names of the scores, which may have a directory."""
    from decoder.scoring.error_counts import match_names

    return {name: words[other] for other, name in match_names(words, scores).items()}


def choose(decoder, references: dict[str, list[str]], num_names: int, num_listed: int) -> tuple[list[str], list[str]]:
    """Return the spoken names, the rarest words of the test set, and the list, with words that are not spoken."""
    counts = Counter(word for words in references.values() for word in words)
    model = decoder.lm
    cost = {word: model.step(0, model.word_id(word))[0] for word in decoder.graph.words if word[0] not in "<!"}
    names = sorted((word for word in counts if word in cost), key=lambda word: (counts[word], -cost[word], word))
    others = sorted((word for word in cost if word not in counts), key=lambda word: (-cost[word], word))
    step = max(1, len(others) // max(1, num_listed - num_names))
    return names[:num_names], [*names[:num_names], *others[::step][: num_listed - num_names]]


def with_weak_words(decoder, path: Path, weak: set[str]):
    """Return the decoder with a language model that knows the words by a small unigram only."""
    import numpy as np

    from decoder.lm.language_model import LanguageModel
    from decoder.search.decoder import Decoder
    from readers.language.arpa import Arpa, ArpaOrder, read_arpa

    arpa = read_arpa(path)
    ids = np.array([i for i, word in enumerate(arpa.vocabulary) if word in weak])
    orders = []
    for k, order in enumerate(arpa.orders):
        words, logprob, backoff = np.asarray(order.words), order.logprob.copy(), order.backoff.copy()
        touched = np.isin(words.reshape(len(words), -1), ids).any(axis=1)
        if k == 0:
            logprob[touched], backoff[touched] = WEAK_LOG10, 0.0
            touched[:] = False
        orders.append(ArpaOrder(words[~touched], logprob[~touched], backoff[~touched]))
    rows = dict(zip(decoder.graph.states, decoder.score_row.tolist()))
    return Decoder(decoder.graph, LanguageModel.from_arpa(Arpa(arpa.vocabulary, orders)), decoder.options, rows)


def figures(references: dict[str, list[str]], texts: dict[str, list[str]], listed: set[str]) -> str:
    """Return the columns of one run."""
    from decoder.scoring.error_counts import align

    spoken, right, false, errors = Counter(), Counter(), 0, 0
    for name, words in references.items():
        for reference, hypothesis in align(words, texts[name]):
            kind = reference in listed
            spoken[kind] += reference is not None
            right[kind] += reference is not None and reference == hypothesis
            false += hypothesis in listed and hypothesis != reference
            errors += reference != hypothesis and reference not in listed and (reference or hypothesis) is not None
    recalls = [
        f"{right[kind]:5d} of {spoken[kind]:<5d}{100 * right[kind] / spoken[kind]:5.1f}" for kind in (True, False)
    ]
    return f"{recalls[0]} {false:6d} {recalls[1]} {100 * errors / spoken[False]:14.2f}"


if __name__ == "__main__":
    sys.exit(main())
