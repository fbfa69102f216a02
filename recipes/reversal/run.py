"""Train an encoder and a decoder that reverse strings of digits (CNTK book, 2.7), or learn your own pairs of sequences.

worked example:
  argonaut recipe reversal --out exp/reversal
makes strings of 1 to 8 digits, trains on some, decodes others and ends with the fraction that is reversed correctly:
  exact 100.0% (test, 736 sequences, 4071 tokens, 0.0% of them wrong)

  argonaut recipe reversal --data ~/corpora/g2p --out exp/g2p --set HiddenDim=256
does the same with the files train.source, train.target, dev.source, ... of a directory.  Each line is a sequence with
blanks between its tokens; line n of a source file belongs to line n of its target file.  With letters as source and
phones as target, the network learns to pronounce words.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from recipes.job import Figure, RecipeOptions, RecipeResult, overrides
from recipes.stage_settings import cntk_settings
from recipes.stages import Stage
from recipes.steps import cntk

if TYPE_CHECKING:
    from recipes.reversal.data import Pair
    from recipes.reversal.score import Score

CONFIG = Path(__file__).parent / "config"


@dataclass(frozen=True, kw_only=True)
class ReversalOptions(RecipeOptions):
    """Options of recipe reversal."""

    overrides: tuple[str, ...] = overrides("to replace, such as Train=[SGD=[maxEpochs=20]]")


class Recipe:
    """The stages, and the places of their files, which are all below `out`."""

    def __init__(self, options: ReversalOptions):
        self.corpus = options.data
        self.out = options.out
        self.seed = options.seed
        self.overrides = options.overrides
        self.data = self.out / "data"
        self.decoded = self.out / "decoded" / "test.target"
        if self.corpus is not None:
            self._pairs()  # reports errors in the corpus before anything is written

    def stages(self) -> list[Stage]:
        what = (
            "strings of digits and their reversals" if self.corpus is None else "the pairs, and the words of both sides"
        )
        return [
            Stage("data", what, self.write_data, (),
                  {"data": str(self.corpus)} if self.corpus is not None else {"seed": self.seed}),
            Stage("train", "encoder and decoder", lambda: self.cntk("Train"), ("data",),
                  cntk_settings(self.cntk_arguments("Train")), self.out / "models"),
            Stage("decode", "outputs of the decoder for the test sources", lambda: self.cntk("Decode"),
                  ("data", "train"), cntk_settings(self.cntk_arguments("Decode"))),
            Stage("score", "fraction of correct sequences", self.score, ("data", "decode")),
        ]  # fmt: skip

    def _pairs(self) -> "dict[str, list[Pair]]":
        from recipes.reversal.data import read_pairs, reversals

        return reversals(self.seed) if self.corpus is None else read_pairs(self.corpus)

    def write_data(self) -> None:
        from recipes.reversal.data import write_pairs

        write_pairs(self._pairs(), self.data)

    def cntk(self, commands: str) -> int:
        from readers.common.text import read_lines

        words = [
            f"{side.capitalize()}Words={len(read_lines(self.data / f'{side}.words'))}" for side in ("source", "target")
        ]
        return cntk(self.cntk_arguments(commands, *words))

    def cntk_arguments(self, commands: str, *words: str) -> list[str]:
        return [
            f"configFile={CONFIG / 'reversal.cntk'}", f"DataDir={self.data}", f"ExpDir={self.out}", *words,
            f"command={commands}", f"randomSeed={self.seed}", "extendTraining=true", *self.overrides,
        ]  # fmt: skip

    def score(self) -> None:
        from readers.common.files import write_lines

        write_lines(self.out / "score.txt", self._score().lines())

    def _score(self) -> "Score":
        from recipes.reversal.score import score

        return score(self.data / "test.source", self.data / "test.target", self.decoded)

    def result(self) -> RecipeResult:
        score = self._score()
        counts = {"exact": score.exact.total(), "sequences": score.sequences.total()}
        counts |= {"errors": score.errors, "tokens": score.tokens}
        exact = Figure("exact", 100 * counts["exact"] / counts["sequences"], counts=counts)
        return RecipeResult(figures=(exact,), lines=tuple(score.lines()))


RECIPE = ReversalOptions, Recipe
