"""A large-vocabulary task for the decoder, without a corpus: 60,000 words, a trigram, cross-word triphones and
simulated speech.

worked example:
  python -m benchmarks.stress --size 60k --out exp/stress
makes a dictionary, a text, a language model, an HMM set, a graph and speech, decodes and ends with the word error rate:
  frames 50.0% wrong; WER 10.1%
The simulated speech is made from state sequences, with so much noise that in a fraction --errors of the frames a wrong
state has the best score.
  python -m benchmarks.stress --dict cmudict-0.7b --text novel.txt --out exp/novel
takes pronunciations from a dictionary in CMUdict's format and sentences from a text, one per line; invented words fill
the dictionary up to its size.
"""

import argparse
import json
from dataclasses import dataclass
from pathlib import Path

from readers.common.files import atomic_write
from readers.errors import ConfigError, FormatError
from recipes.stage_settings import file_settings
from recipes.stages import Stage, command, run_recipe

# With n-gram look-ahead, slack only costs time.
SEARCH = {"acweight": 0.1, "beam": 20.0, "word_end_beam_frac": 0.7, "sil_cost": 0.0, "slack_decay": 0.0}
HELD_OUT = 20  # one in this many sentences of a user's text is used for testing


@dataclass(frozen=True)
class Size:
    """Size of the task: words of the dictionary, words of the text, utterances to decode."""

    words: int
    tokens: int
    utterances: int


SIZES = {
    "tiny": Size(300, 5_000, 4),
    "5k": Size(5_000, 600_000, 60),
    "20k": Size(20_000, 1_500_000, 60),
    "60k": Size(60_000, 3_000_000, 60),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--size", choices=tuple(SIZES), default="60k", help="size of dictionary and text (default 60k)")
    parser.add_argument("--dict", dest="known", type=Path, metavar="FILE", help="dictionary in CMUdict's format")
    parser.add_argument("--text", type=Path, metavar="FILE", help="text with one sentence per line")
    parser.add_argument(
        "--errors",
        type=float,
        default=0.5,
        metavar="X",
        help="fraction of the frames in which a wrong state scores best (default 0.5)",
    )
    parser.add_argument("--utterances", type=int, metavar="N", help="number of utterances to decode (default 60)")
    parser.add_argument(
        "--short-pause", action="store_true", help="add a short-pause model sp, tied to the middle state of silence"
    )


def run(arguments: argparse.Namespace) -> int:
    if not 0 <= arguments.errors < 0.98:
        raise ConfigError(f"command line: --errors {arguments.errors:g}; expected 0 to 0.98")
    if arguments.utterances is not None and arguments.utterances < 1:
        raise ConfigError(f"command line: --utterances {arguments.utterances}; expected at least 1")
    if arguments.data and arguments.text:
        raise ConfigError(
            f"command line: --data {arguments.data} and --text {arguments.text}; expected only one of them"
        )
    recipe = Recipe(arguments)
    return run_recipe(recipe, arguments)


class Recipe:
    """The stages, and the places of their files, which are all below `out`."""

    def __init__(self, arguments: argparse.Namespace):
        self.out: Path = arguments.out
        self.known: Path | None = arguments.known
        self.source: Path | None = arguments.text or arguments.data
        self.size_name, self.size, self.seed = arguments.size, SIZES[arguments.size], arguments.seed
        self.errors, self.short_pause = arguments.errors, arguments.short_pause
        self.num_utterances = arguments.utterances or self.size.utterances
        self.workers = arguments.workers
        self.donor, self.graph, self.speech = self.out / "donor", self.out / "graph", self.out / "speech"
        self.dictionary, self.lm = self.out / "words.dict", self.out / "words.arpa"
        self.model, self.hypotheses = self.out / "am.dnn", self.out / "decode" / "test.mlf"
        self.figures = self.out / "figures.json"
        if self.known is not None or self.source is not None:
            self.user_words()  # reports errors in the user's files before anything is written

    def stages(self) -> list[Stage]:
        seed = {"seed": self.seed}
        given = {"dict": str(self.known or ""), "text": str(self.source or ""), "size": self.size_name}
        given |= seed | {"test_words": self.num_test_words} | file_settings(self.known, self.source)
        sounds = {"errors": self.errors, "utterances": self.num_utterances}
        return [
            Stage("words", f"a dictionary of {self.size.words} words, and sentences", self.write_words, (), given),
            Stage("lm", "a trigram of the text", self.estimate, ("words",)),
            Stage("donor", "a tied-state HMM set in HTK's files", self.write_donor, (),
                  {"short_pause": self.short_pause} | seed),
            Stage("graph", "the graph of cross-word triphones", self.build, ("words", "lm", "donor")),
            Stage("speech", "simulated frames, and the network that scores them", self.speak,
                  ("words", "donor", "graph"), sounds | seed),
            Stage("decode", "words of the test utterances, with the trigram", self.decode, ("lm", "graph", "speech")),
            Stage("score", "word errors", self.score, ("decode", "speech")),
        ]  # fmt: skip

    @property
    def num_test_words(self) -> int:
        """The size of the generated test text, which fewer utterances than usual do not change."""
        return 100 * max(self.num_utterances, self.size.utterances)

    def user_words(self) -> tuple[list[list[str]], dict]:
        """Return the sentences of the user's text and the pronunciations of the user's dictionary."""
        from benchmarks.stress.texts import read_sentences
        from benchmarks.stress.words import read_known

        known = read_known(self.known) if self.known else {}
        sentences = read_sentences(self.source) if self.source else []
        if self.source and len(sentences) < HELD_OUT:
            raise FormatError(f"{self.source}: {len(sentences)} sentences; expected at least {HELD_OUT}, one per line")
        return sentences, known

    def write_words(self) -> None:
        import numpy as np

        from benchmarks.stress import words as dictionaries
        from benchmarks.stress.sentences import Language, as_text

        sentences, known = self.user_words()
        count, rng = self.size.words, np.random.default_rng([self.seed, 0])
        words = dictionaries.rank_words(sentences)[:count]
        words += [word for word in known if word not in set(words)][: count - len(words)]
        words += dictionaries.make_words(count - len(words), rng, taken=words)
        dictionaries.write_words(self.dictionary, words, self.seed, known)
        if sentences:
            inside = set(words)
            sentences = [sentence for sentence in sentences if inside.issuperset(sentence)]
            test, train = sentences[::HELD_OUT], [s for i, s in enumerate(sentences) if i % HELD_OUT]
        else:
            language = Language(count, self.seed)
            texts = ((self.size.tokens, 2), (self.num_test_words, 3))
            train, test = (
                as_text(language.sentences(tokens, np.random.default_rng([self.seed, number])), words)
                for tokens, number in texts
            )
        for name, lines in (("train", train), ("test", test)):
            with atomic_write(self.out / "text" / f"{name}.txt", "w") as file:
                file.writelines(" ".join(line) + "\n" for line in lines)
        with atomic_write(self.out / "words.list", "w") as file:
            file.writelines(f"{word}\n" for word in words)

    def estimate(self) -> int:
        return command(
            "lm", "estimate", "--text", self.out / "text" / "train.txt", "--order", 3, "--method", "kn",
            "--vocabulary", self.out / "words.list", "-o", self.lm,
        )  # fmt: skip

    def write_donor(self) -> None:
        import numpy as np

        from benchmarks.stress.donor import write_donor

        write_donor(self.donor, np.random.default_rng([self.seed, 4]), self.short_pause)

    def build(self) -> int:
        from benchmarks.stress.speech import PAUSE_PROBABILITY

        donor = ("--mmf", self.donor / "mmf", "--hmm-list", self.donor / "list", "--trees", self.donor / "trees")
        return command(
            "graph", *donor, "--hmms", self.out / "hmms", "--dict", self.dictionary, "--lm", self.lm,
            "--sil-prob", PAUSE_PROBABILITY, "--state-list", self.donor / "senones.list", "--out", self.graph,
        )  # fmt: skip

    def speak(self) -> None:
        import numpy as np

        from benchmarks.stress import speech
        from benchmarks.stress.texts import read_sentences
        from decoder.graph.phone_models import PhoneModels
        from readers.htk.dictionary import read_dictionary
        from readers.htk.frame_labels import read_state_list

        outputs = read_state_list(self.donor / "senones.list")
        speaker = speech.Speaker(read_dictionary(self.dictionary), PhoneModels.load(self.out / "hmms"), outputs)
        rng = np.random.default_rng([self.seed, 5])
        sentences = read_sentences(self.out / "text" / "test.txt")[: self.num_utterances]
        utterances = [speaker.say(f"test{number:04}", words, rng) for number, words in enumerate(sentences, 1)]
        points = speech.make_points(np.random.default_rng([self.seed, 6]))
        noise = [speech.draw_noise(len(utterance.senones), rng) for utterance in utterances]
        true = np.concatenate([utterance.senones for utterance in utterances])
        factor = speech.noise_factor(self.errors, points, true, np.concatenate(noise))
        speech.write_model(self.model, points, factor)
        frames = (points[:, u.senones] + factor * drawn.T for u, drawn in zip(utterances, noise))
        speech.write_speech(self.speech, utterances, outputs, frames)

    def decode(self) -> int:
        threads = () if self.workers is None else ("--threads", self.workers)
        return command("argon", *decoding_arguments(self.out), *threads, "-outmlf", self.hypotheses)

    def score(self) -> int:
        from benchmarks.stress.speech import frame_errors
        from decoder.lm.evaluation import perplexity
        from decoder.lm.mapped_model import open_language_model
        from decoder.scoring.error_counts import score
        from decoder.scoring.words import read_words
        from readers.htk.frame_labels import read_state_list

        references = read_words(self.speech / "words.mlf")
        status = command("score", self.speech / "words.mlf", self.hypotheses)
        outputs = read_state_list(self.donor / "senones.list")
        figures = {
            "frame_errors": frame_errors(self.model, self.speech, outputs),
            "perplexity": perplexity(open_language_model(self.lm), references.values()).perplexity,
            "word_error_rate": score(references, read_words(self.hypotheses)).total.word_error_rate,
        }
        with atomic_write(self.figures, "w") as file:
            json.dump(figures, file, indent=1)
        return status

    def closing(self) -> None:
        figures = json.loads(self.figures.read_text(encoding="utf-8"))
        print(
            f"frames {figures['frame_errors']:.1%} wrong; perplexity {figures['perplexity']:.0f}; "
            f"WER {figures['word_error_rate']:.1f}%"
        )


def decoding_arguments(out: Path) -> list[object]:
    """Return the arguments of argon for the files in `out`."""
    from recipes.decoding import search_flags

    files = {
        "-graph": out / "graph" / "graph.dg",
        "-lm": out / "words.arpa",
        "-am": out / "am.dnn",
        "-cntkmap": out / "graph" / "cntkmap",
        "-infiles": out / "speech" / "test.scp",
        "-dnn_window_size": 1,
    }
    return [*(word for pair in files.items() for word in pair), *search_flags(SEARCH)]
