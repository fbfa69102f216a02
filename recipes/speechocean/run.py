"""speechocean762: English sentences of 250 speakers, half of them children, whose mother tongue is Mandarin.

worked example, with the corpus as its repository lays it out in ~/corpora/speechocean762 (train, test, WAVE, resource):
  argonaut recipe speechocean --data ~/corpora/speechocean762 --text sentences.txt --dict cmudict.dict --out exp/so
trains a recogniser as recipe own does, and ends with the word error rates on the test half: of the Gaussian mixtures of
the flat start, of the first network, and of the final one, a TDNN-F by lattice-free MMI, with 95 % intervals, for
children and adults; with the time that each stage took; and with the bundle, exp/so/speechocean.argo.

--text has English sentences, one per line, for the language model, and --dict the pronunciations of their words.
Without the test half, 25 of the 125 speakers of the train half are the test.
"""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, Literal

from readers.common.text import read_lines
from readers.config.options import like, option
from recipes import job
from recipes.own import run as own
from recipes.own.options import OwnDictionary, OwnOptions
from recipes.own.sets import read_names
from recipes.speechocean.corpus import LISTS, Speechocean, write_joined_dictionary
from recipes.speechocean.halves import Halves
from recipes.speechocean.pronunciation import PronunciationMap
from recipes.stages import Stage


@dataclass(frozen=True, kw_only=True)
class SpeechoceanOptions(job.RecipeOptions):
    """Options of recipe speechocean."""

    data: Path = option(help="directory of the corpus, or of its train half", metavar="DIR")
    dict: Path | None = option(None, "more pronunciations, in CMUdict's phones, for the words of {text}")
    text: Path | None = like(OwnOptions, "text")
    text_words: int = like(OwnOptions, "text_words")
    final: Literal["lfmmi", "ce", "ctc"] = option(
        "lfmmi", "criterion of the final network: lattice-free MMI, cross entropy, or CTC"
    )
    second_pass: bool = like(OwnOptions, "second_pass")
    dev_speakers: str | None = option(
        None, "speakers of the dev set: a file, or names separated by commas (default: a list of 13)", metavar="NAMES"
    )
    test_speakers: str | None = option(
        None,
        "speakers of the test set: a file, or names separated by commas (default: those of test/, else a list of 25)",
        metavar="NAMES",
    )
    min_minutes: float = like(OwnOptions, "min_minutes")
    overrides: tuple[str, ...] = job.overrides("of the trainings to replace, such as FinalEpochs=10")


class Recipe(own.Recipe):
    """The stages of recipe own on this corpus, and the systems that the final network is compared with.

    The language model never knows the development set: its error rate is as good a measure as that of the test set.
    """

    texts: ClassVar = {"trained": "train"}

    def __init__(self, options: SpeechoceanOptions):
        from recipes.speechocean.systems import FirstNetwork, FlatStart

        self.source = options.out / "source"
        corpus = Speechocean.find(options.data)
        corpus.write_kaldi(self.source)
        dictionaries = [corpus.lexicon, *([options.dict] if options.dict else [])]
        write_joined_dictionary(dictionaries, self.source / "joined.dict")
        dev_speakers = options.dev_speakers or ",".join(read_lines(LISTS / "dev_speakers.txt"))
        test_speakers = options.test_speakers or ",".join(corpus.test_speakers())
        super().__init__(OwnOptions(
            data=self.source, dictionary=OwnDictionary(dict=self.source / "joined.dict"), kind="kaldi",
            out=options.out, seed=options.seed, workers=options.workers, first=options.first, last=options.last,
            text=options.text, text_words=options.text_words, final=options.final,
            second_pass=options.second_pass,
            dev_speakers=dev_speakers, test_speakers=test_speakers, min_minutes=options.min_minutes,
            language="en", overrides=options.overrides,
        ))  # fmt: skip
        fitted = read_names(dev_speakers) or ()
        tested = read_names(test_speakers) or ()
        heard = sorted(set(corpus.table("utt2spk").values()) - {*fitted, *tested})
        has_aligner = options.final == "lfmmi"
        self.pronunciation = PronunciationMap(
            corpus,
            self.bundle,
            options.out / "pronunciation",
            fitted,
            tested,
            Halves.of(self, heard) if has_aligner else None,
        )
        self.children = corpus.children()
        self.language_models = {"trained": f"LM of the training transcripts{' and a text' if options.text else ''}"}
        self.gaussians = FlatStart(self)
        self.first_recogniser = FirstNetwork(self)

    def stages(self) -> list[Stage]:
        stages = super().stages()
        closing = next(number for number, stage in enumerate(stages) if stage.closes)
        needs = ("lists", "features", "lm", "graph")
        compared = [
            Stage("recognise-gaussians", "the test set, with the Gaussian mixtures of the flat start",
                  self.gaussians.recognise, (*needs, "flatstart")),
            Stage("recognise-first", "the test set, with the first network",
                  self.first_recogniser.recognise, (*needs, "train-first")),
        ]  # fmt: skip
        score = stages[closing]
        score = replace(score, needs=(*(score.needs or ()), *(stage.name for stage in compared)))
        return [*stages[:closing], *compared, score, *stages[closing + 1 :], *self.pronunciation.stages()]

    def result(self) -> job.RecipeResult:
        from recipes.speechocean.systems import figures_of

        result = super().result()
        final = {"lfmmi": "lattice-free MMI", "ce": "cross entropy, on copies", "ctc": "CTC"}[self.options.final or ""]
        systems = {
            "flat start, Gaussians": self.gaussians.evaluation,
            "cross entropy": self.first_recogniser.evaluation,
            final: self.final.evaluation,
        }
        if self.options.second_pass:
            systems |= {f"{final}, second pass": self.second_pass.evaluation}
        rows = figures_of(systems, self.out, self.children)
        return replace(
            result,
            figures=tuple(row.figure() for row in rows),
            lines=(*result.lines[:-1], *(row.line() for row in rows), *result.lines[-1:]),
        )

    @property
    def bundle(self) -> Path:
        return self.out / "speechocean.argo"


RECIPE = SpeechoceanOptions, Recipe
