"""The English bundle `en`: speechocean762, AN4's training speakers, public-domain text and CMUdict.

worked example, with both corpora as they are published:
  argonaut recipe english --data ~/corpora/speechocean762 --an4 ~/corpora/an4 --text sentences.txt.gz \
           --dict cmudict.dict --out exp/en
trains with the stages of recipe own on both corpora together, with multi-condition copies (rooms, noise, hum,
music, voices, telephones, levels), tests on AN4's test speakers, and writes exp/en/en.argo: a compact bundle with
dictionary, pronunciation model, calibrated confidences and a card.  Copy it to a directory of `argonaut models`.
"""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

from decoder import g2p
from readers.common.files import write_json
from readers.config.options import like, option
from recipes import job
from recipes.english.corpus import LICENCE, OCEAN, WEAKNESSES, join_corpora
from recipes.own import run as own
from recipes.own.options import OwnDictionary, OwnOptions
from recipes.packing import AboutOptions, PackOptions, PartOptions
from recipes.speechocean.corpus import Speechocean, write_joined_dictionary
from recipes.speechocean.halves import Halves
from recipes.speechocean.pronunciation import PronunciationMap
from recipes.stages import Stage, call
from recipes.steps import calibrate

LOWEST_RATE = 8000  # Hz, of the telephones among the copies
G2P_ORDER = 4  # 0.6 MB in the bundle; order 5 has 1.6 MB and 6.4 instead of 7.2 % wrong phones


@dataclass(frozen=True, kw_only=True)
class EnglishOptions(job.RecipeOptions):
    """Options of recipe english."""

    data: Path = option(help="directory of speechocean762, or of its train half", metavar="DIR")
    an4: Path = option(help="directory of AN4, with wav and etc", metavar="DIR")
    dict: Path = option(help="CMUdict: pronunciations of the words of {text}")
    text: Path | None = like(OwnOptions, "text")
    text_words: int = like(OwnOptions, "text_words")
    world: int = option(2, "multi-condition copies of each training recording", least=1)
    min_minutes: float = like(OwnOptions, "min_minutes")
    overrides: tuple[str, ...] = job.overrides("of the trainings to replace, such as FinalEpochs=10")


class Recipe(own.Recipe):
    """The stages of recipe own on both corpora, with other copies and another bundle."""

    texts: ClassVar = {"trained": "train"}

    def __init__(self, options: EnglishOptions):
        self.source = options.out / "source"
        self.joined = join_corpora(options.data, options.an4, self.source)
        self.world = options.world
        lexicon = Speechocean.find(options.data).lexicon
        write_joined_dictionary([lexicon, options.dict], self.source / "joined.dict")
        super().__init__(OwnOptions(
            data=self.source, dictionary=OwnDictionary(dict=self.source / "joined.dict"), kind="kaldi",
            out=options.out, seed=options.seed, workers=options.workers, first=options.first, last=options.last,
            text=options.text, text_words=options.text_words, final="lfmmi",
            dev_speakers=",".join(self.joined.dev), test_speakers=",".join(self.joined.test),
            min_minutes=options.min_minutes, language="en", overrides=options.overrides,
        ))  # fmt: skip
        self.language_models = {"trained": "LM of the training transcripts and a text"}
        ocean = self.joined.ocean
        heard = sorted(set(ocean.table("utt2spk").values()) - set(self.joined.ocean_dev))
        self.pronunciation = PronunciationMap(
            ocean, self.bundle, options.out / "pronunciation", self.joined.ocean_dev,
            halves=Halves.of(self, heard, f"{OCEAN}-"),
        )  # fmt: skip

    def stages(self) -> list[Stage]:
        stages = super().stages()
        copies = next(number for number, stage in enumerate(stages) if stage.name == "copies")
        stages[copies] = replace(stages[copies], settings=stages[copies].settings | {"world": self.world})
        pronouncing = Stage("g2p", "a model of pronunciations", self.train_g2p, ("lists",), {"order": G2P_ORDER})
        pack = replace(stages[-1], needs=(*(stages[-1].needs or ()), "g2p"))
        return [*stages[:-1], pronouncing, pack, *self.pronunciation.stages()]

    def copy_options(self, source: Path) -> dict[str, Any]:
        return {"world": self.world, "babble": source}

    def train_g2p(self) -> int:
        dictionary = g2p.TrainingDictionary(dict=self.source / "joined.dict")
        g2p.train_g2p(
            g2p.G2PTrainOptions(dictionary=dictionary, order=G2P_ORDER, output=self.g2p, threads=self.workers)
        )
        return 0

    def pack(self) -> int:
        card = self.out / "card.json"
        write_json(card, {
            "data": [*self.joined.data, "language model: these transcripts and public-domain prose of 1867 to 1924"],
            "hours": round(self.facts.hours, 2), "speakers": self.joined.num_speakers, "weaknesses": list(WEAKNESSES),
        })  # fmt: skip
        final = self.final
        options = PackOptions(
            experiment=self.out, recipe=final.layout, output=self.bundle, compact=True,
            parts=PartOptions(rate=self.facts.rate, window=final.window, g2p=self.g2p),
            about=AboutOptions(
                name="en", language="en", licence=LICENCE, card=card, lowest_rate=min(LOWEST_RATE, self.facts.rate)
            ),
        )  # fmt: skip
        lost = call("pack", options)
        plain = self.out / "lists" / "plain.hcopy.list"
        return lost | calibrate(self.bundle, words=self.labels("dev"), test=self.labels("test"), list=plain)

    @property
    def g2p(self) -> Path:
        return self.out / "english.g2p"

    @property
    def bundle(self) -> Path:
        return self.out / "en.argo"


RECIPE = EnglishOptions, Recipe
