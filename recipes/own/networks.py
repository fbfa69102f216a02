"""The networks of the recipe: by cross entropy on triphones, the final one also by lattice-free MMI on biphones, or by
CTC on phones.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from decoder import grammars, tying
from decoder.graph import GraphOptions
from decoder.sequence_training.chain.options import ChainStates
from readers.config.config import load_config
from recipes.an4.lattice_free import biphones
from recipes.evaluation import Evaluation, language_models
from recipes.packing import LayoutName
from recipes.stage_settings import cntk_settings
from recipes.stages import call
from recipes.steps import cntk
from recipes.tuning import Grid

if TYPE_CHECKING:
    from recipes.own.run import Recipe

CONFIG = Path(__file__).parent / "config"
SILENCE = "sil"
BLANK = "<blk>"
LOG_PRIOR = "LogPrior"  # of a network by CTC
LEAST_PRIOR = 1e-5
PRIOR_WEIGHT = 0.3  # on 130 utterances of speechocean762's development set 0, 0.3 and 0.5 have 66, 58 and 64 % errors


def names_in(configs: Sequence[Path]) -> set[str]:
    """Return the names that configurations set, in lower case."""
    return {name.lower() for name in load_config([f"configFile={'+'.join(map(str, configs))}"]).names()}


class Network:
    """A network of the recipe, and the graphs that it decodes with.

    window: frames in its input.
    kind: that tells it from the others; layout: of its bundle; given_layout: of that with a given language model.
    tuned_on: the list with which its search options are chosen.
    configs: files of its training, of which later ones replace settings of earlier ones.
    trained: the model that the training writes.
    """

    window: int
    kind: str
    layout: LayoutName
    given_layout: LayoutName
    tuned_on: str
    configs: tuple[Path, ...]
    evaluated_by: type[Evaluation] = Evaluation

    def __init__(self, recipe: "Recipe", folder: str, name: str):
        self.recipe = recipe
        self.home = recipe.out / folder
        self.model = self.home / "model" / name
        self.trained = self.model

    @property
    def grid(self) -> Grid:
        """The search options that are tried."""
        raise NotImplementedError

    def graph_folder(self, name: str) -> Path:
        """Return the directory of the graph for a language model."""
        raise NotImplementedError

    def prepare(self) -> int:
        """Make the graphs and what else the network needs besides alignment and copies."""
        raise NotImplementedError

    def train(self) -> int:
        raise NotImplementedError

    def arguments(self, *settings: str) -> list[str]:
        """Return the arguments of `cntk`."""
        return [
            f"configFile={'+'.join(map(str, self.configs))}", f"ExpDir={self.recipe.out}", f"WorkDir={self.home}",
            f"randomSeed={self.recipe.seed}", *settings, *self.overrides(),
        ]  # fmt: skip

    def overrides(self) -> list[str]:
        """Return the settings that the user replaces, without those that only networks of another criterion have."""
        others = set().union(*(names_in(kind.configs) for kind in (CrossEntropy, LatticeFree, Ctc)))
        others -= names_in(self.configs)
        return [setting for setting in self.recipe.overrides if setting.partition("=")[0].strip().lower() not in others]

    def settings(self) -> dict[str, str]:
        """Return what the training depends on besides the results of other stages."""
        return cntk_settings(self.arguments("NumSenones=1"))

    @property
    def evaluation(self) -> Evaluation:
        recipe = self.recipe
        models = language_models(recipe.language_models, recipe.lm_file, self.graph_folder, recipe.texts)
        return self.evaluated_by(
            recipe.out, self.home, self.model, self.window, models, self.grid, recipe.workers, tuned_on=self.tuned_on
        )


class CrossEntropy(Network):
    """A network on tied triphones: the first, which aligns the training set, or the final one, on copies as well."""

    window = 21
    kind = "own"
    layout: LayoutName = "own"
    given_layout: LayoutName = "own-given"
    tuned_on = "dev"
    configs = (CONFIG / "own.cntk",)

    def __init__(self, recipe: "Recipe", first: bool, folder: str = ""):
        super().__init__(recipe, folder or ("first" if first else "final"), "own.dnn")
        self.is_first = first

    @property
    def grid(self) -> Grid:
        from recipes.an4.grid import GRID

        return GRID

    def graph_folder(self, name: str) -> Path:
        return self.recipe.graph_folder(name) if self.is_first else self.home / "graph" / name

    def prepare(self) -> int:
        recipe = self.recipe
        return recipe.make_triphone_graphs(recipe.graph_names, recipe.spoken, self.graph_folder)

    def train(self, *settings: str) -> int:
        from readers.htk.frame_labels import read_state_list

        sizes = [*self.recipe.sizes.arguments(self.is_first), f"InputDim={self.window * self.recipe.feature_dim}"]
        return cntk(self.arguments(f"NumSenones={len(read_state_list(self.recipe.senones))}", *sizes, *settings))

    def arguments(self, *settings: str) -> list[str]:
        recipe = self.recipe
        labels = recipe.hmms / "states.mlf" if self.is_first else recipe.copies / "training.mlf"
        scp = recipe.out / "lists" / f"{'train' if self.is_first else 'training'}.scp"
        return super().arguments(
            f"TrainList={scp}", f"SenoneLabels={labels}", f"SenoneList={recipe.senones}", *settings
        )


class Tdnnf(Network):
    """A final network that is a TDNN-F, at a third of the frames.

    scripts: directory of the descriptions of its network.
    """

    window = biphones.WINDOW
    layout: LayoutName = "own-lfmmi"
    given_layout: LayoutName = "own-lfmmi-given"
    tuned_on = "tune"
    scripts: Path

    def __init__(self, recipe: "Recipe"):
        super().__init__(recipe, "final", "own.tdnnf")
        self.trained = self.model.parent / "epochs" / self.model.name

    @property
    def grid(self) -> Grid:
        from recipes.own.sizes import LATTICE_FREE_GRID

        return LATTICE_FREE_GRID

    def graph_folder(self, name: str) -> Path:
        return self.home / "graph" / name

    def train(self) -> int:
        dim = self.recipe.feature_dim
        sizes = self.recipe.tdnnf_sizes.arguments()
        return cntk(self.arguments(*self.outputs(), f"FeatureDim={dim}", f"InputDim={self.window * dim}", *sizes))

    def outputs(self) -> list[str]:
        """Return the settings of the training that tell the number of outputs."""
        raise NotImplementedError

    def arguments(self, *settings: str) -> list[str]:
        return super().arguments(f"ScriptDir={self.scripts}", *settings)


class LatticeFree(Tdnnf):
    """A final network by lattice-free MMI on biphones."""

    kind = "own-lfmmi"
    configs = (biphones.CONFIG / "lfmmi.cntk", CONFIG / "lfmmi.cntk")
    scripts = biphones.CONFIG

    @property
    def chain(self) -> Path:
        """Directory of the biphones and the graphs of the criterion."""
        return self.home / "chain"

    def prepare(self) -> int:
        """Make biphones from the alignment that the copies have, and the graphs of the language models."""
        from recipes.own.sizes import PHONE_ORDER

        recipe = self.recipe
        sizes = recipe.tdnnf_sizes
        lost = biphones.make_biphones(
            recipe.copies / "training.mlf",
            ChainStates(state_list=recipe.flat / "states.list", trees=recipe.hmms / "trees"),
            recipe.out / "lists" / "train.scp", self.home, order=PHONE_ORDER,
            trees=tying.TreeOptions(threshold=sizes.threshold, min_frames=sizes.min_frames),
        )  # fmt: skip
        for name in recipe.graph_names:
            lost |= biphones.make_graph(
                self.chain, recipe.spoken, recipe.lm_file(name), self.graph_folder(name),
                graph=GraphOptions(silence=SILENCE, drop_missing=True), hmms=self.home / "tables",
            )  # fmt: skip
        return lost

    def outputs(self) -> list[str]:
        from readers.htk.frame_labels import read_state_list

        return [f"NumSenones={len(read_state_list(self.chain / 'senones.list'))}"]


class Ctc(Tdnnf):
    """A final network by connectionist temporal classification, whose tokens are phones."""

    kind = "own-ctc"
    configs = (CONFIG / "ctc.cntk",)
    scripts = CONFIG

    @property
    def tokens(self) -> Path:
        """List of the phones, and of the blank, which comes last."""
        return self.home / "tokens.txt"

    def prepare(self) -> int:
        """Write the phones of the copies, and make the graphs of the language models."""
        from recipes.own.alignments import write_phones

        recipe = self.recipe
        write_phones(recipe.copies / "training.mlf", self.home / "labels.mlf", self.tokens, SILENCE, BLANK)
        lost = 0
        for name in recipe.graph_names:
            options = grammars.GraphFiles(
                tokens=self.tokens, dictionary=grammars.GraphDictionary(dict=recipe.spoken),
                lm=recipe.lm_file(name), graph=GraphOptions(drop_missing=True), out=self.graph_folder(name),
            )  # fmt: skip
            lost |= call("graph", options)
        return lost

    def outputs(self) -> list[str]:
        from readers.htk.frame_labels import read_state_list

        num_tokens = len(read_state_list(self.tokens))
        return [f"NumTokens={num_tokens}", f"Blank={num_tokens - 1}"]

    def train(self) -> int:
        lost = super().train()
        self.set_prior()
        return lost

    def set_prior(self) -> None:
        """Divide the outputs by a power of their means on the development set, as those of hybrid networks by priors.

        Most frames are blank, and a search that takes them as they are leaves out words (Miao et al., EESEN, 2015).
        """
        from acoustic.network import load_model, save_model
        from recipes.decoding import score_utterances

        network = load_model(self.model)
        scores = score_utterances(self.model, self.recipe.out / "lists" / "valid.scp", self.window)
        posteriors = np.exp(np.concatenate([*scores.values()], axis=1) + network.stored_values()[LOG_PRIOR])
        means = np.maximum(posteriors.mean(axis=1, keepdims=True), LEAST_PRIOR)
        network.set_value(LOG_PRIOR, PRIOR_WEIGHT * np.log(means))
        save_model(network, self.model)
