"""How well the confidences of `argonaut align` find wrong words of transcripts, on AN4.

    python -m benchmarks.alignment_confidence an4.argo AN4

an4.argo is a bundle of the recipe an4 or lvcsr, AN4 the directory of the corpus.  In the transcripts of the development
speakers and of the test speakers, none of whom is in the training set, 10 % of the words, chosen at random, are
replaced by other words of the dictionary, and the recordings are aligned.  The area under the ROC curve (AUC) is the
probability that a replaced word has a lower confidence than one that was not replaced.

Prints it for the confidences of words, which are geometric means over phones, and for those of their worst phones;
then the share of doubtful words (confidence below the default of --doubtful) among replaced and other words.
"""

import argparse
from pathlib import Path

import numpy as np

from decoder.recognizer import ForcedAligner
from decoder.recognizer.jobs.alignment.options import THRESHOLD
from recipes.an4.corpus import find_sets

REPLACED = 0.1
NOT_SPOKEN = ("<s>", "</s>", "<sil>")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bundle", type=Path, metavar="BUNDLE", help="bundle of the recipe an4 or lvcsr")
    parser.add_argument("data", type=Path, metavar="AN4", help="directory of the corpus")
    parser.add_argument("--seed", type=int, default=0, help="which words are replaced (0)")
    arguments = parser.parse_args()
    aligner, sets = ForcedAligner.load(arguments.bundle), find_sets(arguments.data)
    vocabulary = sorted(aligner.graphs.words.keys() - set(NOT_SPOKEN))
    for part in ("dev", "test"):
        rng = np.random.default_rng(arguments.seed)
        confidences, worst, wrong = [], [], []
        for utterance in sets[part]:
            words, replaced = replace_words(utterance.words, vocabulary, rng)
            aligned = aligner.align(utterance.audio, words)
            wrong += replaced
            confidences += [word.confidence for word in aligned.words]
            worst += [
                min(phone.confidence for phone in aligned.phones if word.start <= phone.start < word.end)
                for word in aligned.words
            ]
        truth, values = np.array(wrong), np.array(confidences)
        doubtful = [f"{np.mean(values[chosen] < THRESHOLD):.1%}" for chosen in (truth, ~truth)]
        print(
            f"{part:<5}{len(values):5} words, {truth.sum():3} replaced: AUC {auc(values, truth):.4f}, of the worst "
            f"phones {auc(np.array(worst), truth):.4f}; doubtful {doubtful[0]} of the replaced, {doubtful[1]} of the "
            "others"
        )


def replace_words(words, vocabulary: list[str], rng: np.random.Generator) -> tuple[list[str], list[bool]]:
    """Return the words, some replaced, and which."""
    replaced = rng.random(len(words)) < REPLACED
    others = [[other for other in vocabulary if other != word] for word in words]
    found = [other[rng.integers(len(other))] if wrong else word for word, other, wrong in zip(words, others, replaced)]
    return found, replaced.tolist()


def auc(confidence: np.ndarray, wrong: np.ndarray) -> float:
    """Return the probability that a wrong word has a lower confidence than another; half of it if they are equal."""
    low, high = confidence[wrong][:, None], confidence[~wrong]
    return float(np.mean((low < high) + 0.5 * (low == high)))


if __name__ == "__main__":
    main()
