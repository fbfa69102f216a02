"""How many utterances outside of a grammar are rejected, on AN4.

    python -m benchmarks.rejection an4.argo AN4

an4.argo is a bundle of the recipe an4, AN4 the directory of the corpus.  Each utterance of the development speakers and
of the test speakers, none of whom is in the training set, is recognised with each of four grammars.  It is inside a
grammar if its transcript is one of the sentences, otherwise outside.  Most of those outside consist of words that the
grammars have in other places, which is harder than words of another kind.

An utterance is rejected if its `grammar_score` is below a threshold.  Prints, for each threshold, the rejected share of
the utterances outside (right) and inside (wrong): that with 5 % false rejections of the development set, the default of
`GrammarOptions`, and that with 5 % false rejections of the test set itself.
"""

import argparse
from collections import defaultdict
from pathlib import Path

import numpy as np

from decoder import Recognizer
from decoder.grammars import GrammarOptions, open_grammar
from decoder.grammars.word_acceptor import word_acceptor
from recipes.an4.corpus import find_sets

FALSE_REJECTIONS = 0.05
LETTERS = " | ".join("ABCDEFGHIJKLMNOPQRSTUVWXYZ")
NUMBERS = (
    "ZERO | OH | ONE | TWO | THREE | FOUR | FIVE | SIX | SEVEN | EIGHT | NINE | TEN | ELEVEN | TWELVE | THIRTEEN | "
    "FOURTEEN | FIFTEEN | SIXTEEN | SEVENTEEN | EIGHTEEN | NINETEEN | TWENTY | THIRTY | FORTY | FIFTY | SIXTY | "
    "SEVENTY | EIGHTY | NINETY"
)
SENTENCES = {
    "spelling": "<letter>+",
    "numbers": "<number>+",
    "commands": "ENTER <number>+ | YES | NO | GO | STOP | START | HELP | REPEAT",
    "codes": "[ERASE | RUBOUT] <letter>+ <number>+",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bundle", type=Path, metavar="BUNDLE", help="bundle of the recipe an4")
    parser.add_argument("data", type=Path, metavar="AN4", help="directory of the corpus")
    arguments = parser.parse_args()
    recognizer, sets = Recognizer.load(arguments.bundle), find_sets(arguments.data)
    scores: dict[tuple[str, bool], list[float]] = defaultdict(list)  # (set, inside the grammar)
    for name, sentence in SENTENCES.items():
        text = f"#JSGF V1.0; grammar {name}; <letter> = {LETTERS}; <number> = {NUMBERS}; public <s> = {sentence};"
        listener, accepts = recognizer.with_grammar(text, "jsgf"), acceptance(text)
        for part in ("dev", "test"):
            words = {str(utterance.audio): utterance.words for utterance in sets[part]}
            count = [0, 0]
            for audio, transcript in listener.transcribe_many(words):
                inside = accepts(words[audio])
                count[inside] += 1
                scores[part, inside].append(transcript.grammar_score)
            print(f"{name:<9} {part:<4} {count[True]:4} utterances inside, {count[False]:4} outside", flush=True)
    print(f"{'threshold':<34}{'value':>8}{'dev: right':>12}{'wrong':>8}{'test: right':>13}{'wrong':>8}")
    for label, threshold in (
        ("5 % false rejections of dev", quantile(scores["dev", True])),
        ("default of GrammarOptions", GrammarOptions().threshold),
        ("5 % false rejections of test", quantile(scores["test", True])),
    ):
        shares = [
            np.mean(np.array(scores[part, side]) < threshold) for part in ("dev", "test") for side in (False, True)
        ]
        print(f"{label:<34}{threshold:8.3f}{shares[0]:12.1%}{shares[1]:8.1%}{shares[2]:13.1%}{shares[3]:8.1%}")


def quantile(scores: list[float]) -> float:
    """Return the highest threshold that rejects at most the share FALSE_REJECTIONS of the scores."""
    return sorted(scores)[int(FALSE_REJECTIONS * len(scores))]


def acceptance(text: str):
    """Return a function that says whether words are a sentence of a JSGF grammar."""
    acceptor, words = word_acceptor(open_grammar(text, "jsgf"))
    arcs = defaultdict(set)
    columns = (acceptor.source, acceptor.target, acceptor.label)
    for source, target, label in zip(*(column.tolist() for column in columns)):
        arcs[source, words[label - 1]].add(target)

    def accepts(sentence) -> bool:
        states = {acceptor.start}
        for word in sentence:
            states = {after for state in states for after in arcs[state, word]}
        return bool(np.isfinite(acceptor.final_cost[list(states)]).any())

    return accepts


if __name__ == "__main__":
    main()
