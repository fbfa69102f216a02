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

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from decoder import grammars, graph
from decoder.recognizer.jobs.decoding import options as decoding
from readers.common.files import atomic_write
from readers.config.options import option
from readers.errors import FormatError
from recipes.job import Figure, RecipeOptions, RecipeResult
from recipes.stage_settings import file_settings
from recipes.stages import Stage, call
from recipes.steps import estimate

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


@dataclass(frozen=True, kw_only=True)
class StressOptions(RecipeOptions):
    """Options of the task."""

    size: Literal["tiny", "5k", "20k", "60k"] = option("60k", "size of dictionary and text")
    known: Path | None = option(None, "dictionary in CMUdict's format", flag="--dict")
    text: Path | None = option(None, "text with one sentence per line")
    errors: float = option(0.5, "fraction of the frames in which a wrong state scores best", least=0, below=0.98)
    utterances: int | None = option(None, "number of utterances to decode (default 60)", least=1)
    short_pause: bool = option(False, "add a short-pause model sp, tied to the middle state of silence")

    def __post_init__(self) -> None:
        super().__post_init__()
        is_single = self.data is None or self.text is None
        self.require("data", is_single, "is given beside {text}; expected only one of them")


class Recipe:
    """The stages, and the places of their files, which are all below `out`."""

    def __init__(self, options: StressOptions):
        self.out, self.known, self.source = options.out, options.known, options.text or options.data
        self.size_name, self.size, self.seed = options.size, SIZES[options.size], options.seed
        self.errors, self.short_pause = options.errors, options.short_pause
        self.num_utterances = options.utterances or self.size.utterances
        self.workers = options.workers
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
        return estimate(self.out / "text" / "train.txt", self.lm, order=3, vocabulary=self.out / "words.list")

    def write_donor(self) -> None:
        import numpy as np

        from benchmarks.stress.donor import write_donor

        write_donor(self.donor, np.random.default_rng([self.seed, 4]), self.short_pause)

    def build(self) -> int:
        from benchmarks.stress.speech import PAUSE_PROBABILITY

        options = grammars.GraphFiles(
            mmf=self.donor / "mmf", hmm_list=self.donor / "list", trees=self.donor / "trees", hmms=self.out / "hmms",
            dictionary=grammars.GraphDictionary(dict=self.dictionary), lm=self.lm,
            state_list=self.donor / "senones.list", out=self.graph,
            graph=graph.GraphOptions(silence_probability=PAUSE_PROBABILITY),
        )  # fmt: skip
        return call("graph", options)

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
        options = decoding_options(self.out)
        output = decoding.DecodeOutputOptions(outmlf=self.hypotheses)
        search = replace(options.search, threads=self.workers)
        return call("argon", replace(options, output=output, search=search))

    def score(self) -> int:
        from benchmarks.stress.speech import frame_errors
        from decoder.lm.evaluation import perplexity
        from decoder.lm.mapped_model import open_language_model
        from decoder.scoring.error_counts import score
        from decoder.scoring.words import read_words
        from readers.htk.frame_labels import read_state_list
        from recipes.cli.score import Shown

        references = read_words(self.speech / "words.mlf")
        status = call("score", Shown(reference=self.speech / "words.mlf", hypothesis=self.hypotheses))
        outputs = read_state_list(self.donor / "senones.list")
        figures = {
            "frame_errors": frame_errors(self.model, self.speech, outputs),
            "perplexity": perplexity(open_language_model(self.lm), references.values()).perplexity,
            "word_error_rate": score(references, read_words(self.hypotheses)).total.word_error_rate,
        }
        with atomic_write(self.figures, "w") as file:
            json.dump(figures, file, indent=1)
        return status

    def result(self) -> RecipeResult:
        figures = json.loads(self.figures.read_text(encoding="utf-8"))
        line = (
            f"frames {figures['frame_errors']:.1%} wrong; perplexity {figures['perplexity']:.0f}; "
            f"WER {figures['word_error_rate']:.1f}%"
        )
        return RecipeResult(figures=(Figure("WER", figures["word_error_rate"]),), lines=(line,))


RECIPE = StressOptions, Recipe


def decoding_options(out: Path) -> decoding.DecodeOptions:
    """Return the options of argon for the files in `out`."""
    acoustic = decoding.AcousticOptions(
        infiles=out / "speech" / "test.scp", am=out / "am.dnn", cntkmap=out / "graph" / "cntkmap", window=1
    )
    return decoding.DecodeOptions(
        graph=out / "graph" / "graph.dg",
        lm=out / "words.arpa",
        acoustic=acoustic,
        search=decoding.DecodeSearchOptions(**SEARCH),
    )
