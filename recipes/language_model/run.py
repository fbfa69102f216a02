"""Language models: a Kneser-Ney trigram, and the CNTK book's class-based RNN and LSTM (7.2, 7.3), also for rescoring.

worked example:
  argonaut recipe language_model --out exp/lm --size demo        a generated text
  argonaut recipe language_model --text novel.txt --out exp/lm   your own text, one sentence per line
ends with the perplexity of each model on the test set and the word error rates before and after rescoring.
"""

import json
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from decoder import lm
from decoder.lattices import jobs
from readers.common.files import write_json, write_lines
from readers.config.options import option
from readers.language.vocabulary import read_vocabulary
from recipes.cli.console import progress_display
from recipes.job import Figure, RecipeOptions, RecipeResult, overrides
from recipes.stage_settings import cntk_settings, file_settings
from recipes.stages import Stage, call
from recipes.steps import cntk, estimate

if TYPE_CHECKING:
    from acoustic.scoring.word_scorer import WordScorer

CONFIG = Path(__file__).parent / "config"
MODELS = ("rnn", "lstm")
TITLES = {"rnn": "simple recurrent layer", "lstm": "LSTM"}
UNKNOWN, MARK = "<unk>", "</s>"
# Settings of sizes other than the book's (full): smaller texts need smaller vocabularies and fewer epochs.
SETTINGS = {
    "tiny": {"VocabSize": 500, "NbrClass": 20, "HiddenSize": 30, "MaxEpochs": 3},
    "demo": {"VocabSize": 5000, "NbrClass": 50, "HiddenSize": 100, "MaxEpochs": 5},
    "full": {"VocabSize": 10000, "NbrClass": 50, "HiddenSize": 200, "MaxEpochs": 40},
}
NUM_LISTS = {"tiny": 20, "demo": 200, "full": 400}  # utterances per set to recognise and rescore


@dataclass(frozen=True, kw_only=True)
class LanguageModelOptions(RecipeOptions):
    """Options of recipe language_model."""

    text: Path | None = option(
        None, "text with one sentence per line, to be split into training, development and test set"
    )
    size: Literal["tiny", "demo", "full"] = option("full", "size of text and networks")
    models: tuple[Literal["rnn", "lstm"], ...] = option(
        (), "network to train (repeatable; default both)", flag="--model"
    )
    epochs: int | None = option(
        None, "maximum number of epochs (default: 40, as in the book; fewer for tiny and demo)", least=1
    )
    overrides: tuple[str, ...] = overrides(
        "to replace, such as HiddenSize=300 or Train=[SGD=[learningRatesPerSample=0.05]]"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        is_single = self.data is None or self.text is None
        self.require("data", is_single, "is given beside {text}; expected only one of them")


class Recipe:
    """The stages, and the places of their files, which are all below `out`."""

    def __init__(self, options: LanguageModelOptions):
        self.out = options.out
        self.source = options.text or options.data
        self.size = options.size
        self.seed = options.seed
        self.overrides = options.overrides
        self.models = [name for name in MODELS if not options.models or name in options.models]
        self.epochs: int = options.epochs or SETTINGS[self.size]["MaxEpochs"]
        self.text = self.out / "text"
        self.words = self.out / "words"
        self.ngram = self.out / "ngram.arpa"
        self.vocabulary = self.words / "vocabulary"
        self.figures = self.out / "perplexities.json"
        self.rescored = self.out / "rescoring.json"
        self.picture = self.out / "pictures" / "perplexities.png"

    def stages(self) -> list[Stage]:
        trained = tuple(f"train-{name}" for name in self.models)
        return [
            Stage("text", "a generated text" if self.source is None else f"the text of {self.source}", self.make_text,
                  (), self.text_settings()),
            Stage("words", "vocabulary and word classes", self.make_words, ("text",),
                  cntk_settings(self.cntk_arguments("rnn", "Words"))),
            Stage("ngram", "a Kneser-Ney trigram", self.estimate, ("text", "words")),
            *(
                Stage(
                    f"train-{name}", f"the class-based network, {TITLES[name]}", partial(self.train, name),
                    ("text", "words"), cntk_settings(self.cntk_arguments(name, "Train:Test")), self.out / name,
                )
                for name in self.models
            ),
            Stage("perplexity", "of all models on development and test set", self.measure,
                  ("text", "words", "ngram", *trained), {"models": self.models}),
            Stage("nbest", "lists of hypotheses of a simulated recogniser", self.recognise, ("text", "ngram"),
                  {"size": self.size, "seed": self.seed}),
            Stage("rescore", "word error rate before and after", self.rescore, ("words", "ngram", "nbest", *trained),
                  {"models": self.models}),
        ]  # fmt: skip

    def text_settings(self) -> dict[str, Any]:
        if self.source is None:
            return {"size": self.size, "seed": self.seed}
        return {"source": str(self.source)} | (file_settings(self.source) if self.source.is_file() else {})

    def make_text(self) -> None:
        from recipes.language_model.generate import write_texts
        from recipes.language_model.texts import split_text, take_texts

        if self.source is None:
            with progress_display("text", "words") as progress:
                write_texts(self.text, self.size, self.seed, progress)
        elif self.source.is_dir():
            take_texts(self.source, self.text)
        else:
            split_text(self.source, self.text)

    def make_words(self) -> int:
        status = self.cntk("rnn", "Words", "Words=[makeMode=false]")
        self.write_word_list()
        return status

    def write_word_list(self) -> None:
        """Write the vocabulary of the n-gram: that of the networks without sentence marks, which the n-gram adds."""
        words = [word.word for word in read_vocabulary(self.vocabulary) if word.word not in (MARK, UNKNOWN)]
        write_lines(self.words / "words.list", words)

    def estimate(self) -> int:
        vocabulary = self.words / "words.list"
        return estimate(self.text / "train.txt", self.ngram, order=3, vocabulary=vocabulary, unk=UNKNOWN)

    def train(self, name: str) -> int:
        from recipes.language_model.results import history_lines

        words = read_vocabulary(self.vocabulary)  # a small text may have fewer words than requested
        status = self.cntk(name, "Train:Test", f"VocabSize={len(words)}")
        print("\n".join(history_lines(self.model(name))), flush=True)
        return status

    def cntk(self, name: str, commands: str, *more: str) -> int:
        return cntk(self.cntk_arguments(name, commands, *more))

    def cntk_arguments(self, name: str, commands: str, *more: str) -> list[str]:
        files = "+".join(str(CONFIG / f"{part}lm.cntk") for part in dict.fromkeys(("rnn", name)))
        chosen = SETTINGS[self.size] | {"MaxEpochs": self.epochs}
        return [
            f"configFile={files}", f"DataDir={self.text}", f"ExpDir={self.out}", f"command={commands}",
            f"randomSeed={self.seed}", *(f"{key}={value}" for key, value in chosen.items()), *self.overrides, *more,
        ]  # fmt: skip

    def model(self, name: str) -> Path:
        return self.out / name / "model"

    def measure(self) -> None:
        from recipes.language_model.results import draw_perplexities, measure

        perplexities = measure(self.ngram, self.scorers(), self.text)
        perplexities.write(self.figures)
        print("\n".join(perplexities.table()), flush=True)
        draw_perplexities({name: self.model(name) for name in self.models}, perplexities, self.picture)

    def scorers(self) -> "dict[str, WordScorer]":
        """Return name -> scorer of ln P for each network."""
        from acoustic.scoring.word_scorer import WordScorer

        words = read_vocabulary(self.vocabulary)
        return {name: WordScorer(self.model(name), words, UNKNOWN) for name in self.models}

    def recognise(self) -> None:
        from decoder.lm.language_model import LanguageModel
        from readers.language.arpa import read_arpa
        from recipes.language_model.hypotheses import write_lists

        model = LanguageModel.from_arpa(read_arpa(self.ngram))
        for name in ("dev", "test"):
            with progress_display("recognise", "utterances") as progress:
                write_lists(
                    self.text / f"{name}.txt", model, self.out / "nbest", NUM_LISTS[self.size], self.seed, progress
                )

    def rescore(self) -> None:
        from recipes.language_model.rescore import first_score, oracle_score, score_files, trials

        nbest = self.out / "nbest"
        files = {part: (nbest / f"{part}.nbest", nbest / f"{part}.mlf") for part in ("dev", "test")}
        rates = {"trigram": first_score(*files["test"]).word_error_rate}
        for name, scorer in self.scorers().items():
            scores = dict(trials(scorer, self.ngram, *files["dev"]))
            weight = min(scores, key=lambda weight: scores[weight].num_errors)
            shown = ", ".join(f"{rate.word_error_rate:.1f}% at {weight:g}" for weight, rate in scores.items())
            print(f"{name}, dev WER by interpolation weight: {shown}", flush=True)
            chosen = nbest / f"test.{name}.mlf"
            network = lm.NetworkOptions(model=self.model(name), words=self.vocabulary, weight=weight)
            call("lm", jobs.RescoreListsOptions(nbest=files["test"][0], network=network, lm=self.ngram, mlf=chosen))
            rates[f"{name} ({weight:g})"] = score_files(files["test"][1], chosen).word_error_rate
        rates["oracle"] = oracle_score(*files["test"]).word_error_rate
        write_json(self.rescored, rates, indent=1)

    def result(self) -> RecipeResult:
        from recipes.language_model.results import Perplexities

        measured = Perplexities.read(self.figures)
        rates = json.loads(self.rescored.read_text())
        perplexities = [
            Figure("perplexity", model.test, model.name, {"words": measured.num_predicted["test"]})
            for model in measured.models
        ]
        return RecipeResult(
            figures=(*perplexities, *(Figure("WER", rate, name) for name, rate in rates.items())),
            pictures=(self.picture,),
            lines=(
                *measured.table(),
                f"picture: {self.picture}",
                "WER " + ", ".join(f"{name} {rate:.1f}%" for name, rate in rates.items()),
            ),
        )


RECIPE = LanguageModelOptions, Recipe
