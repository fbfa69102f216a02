"""System `ivector` of recipe an4: the tied triphones of recipe lvcsr, with an i-vector of each utterance as input."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from features import ivectors
from recipes.an4.comparison import Comparison, count_lines
from recipes.an4.corpus import Utterance
from recipes.an4.recipe import CONFIG
from recipes.evaluation import Evaluation
from recipes.job import RecipeOptions
from recipes.lvcsr.run import Tied
from recipes.stage_settings import cntk_settings, file_settings
from recipes.stages import Stage, account, call
from recipes.steps import cntk, extract

NAME = "ivector"
GAUSSIANS, VALUES = 128, 50


def compared(options: RecipeOptions, overrides: Sequence[str]) -> Comparison:
    """Return the stages of the system."""
    system = Adapted(options, overrides, NAME)
    stages = [*system.shared_stages(), *system.tying_stages(), *system.system_stages()]
    return Comparison(stages, [(system, "tied triphones with i-vectors")])


class Adapted(Tied):
    """The network of recipe lvcsr's system `natural` with a second input."""

    def __init__(self, options: RecipeOptions, overrides: Sequence[str], name: str):
        super().__init__(options, overrides, name)
        self.gaussians = GAUSSIANS
        self.values = VALUES
        self.vectors = self.out / "lvcsr" / "ivectors"

    def system_stages(self) -> list[Stage]:
        graphs = ("lists", "features", "lm", "graph-tied", "ivectors")
        settings = {"gaussians": self.gaussians, "values": self.values}
        return [
            Stage("ivectors", "cepstra, a model of i-vectors, and an i-vector of each utterance", self.make_vectors,
                  ("lists",), settings | file_settings(CONFIG / "ivector.hcopy")),
            Stage(f"train-{NAME}", "the network with i-vectors", self.train_tied,
                  ("lists", "features", "tie", "ivectors"), cntk_settings(self.system_arguments()),
                  self.home / "model"),
            *self.evaluation_stages(NAME, graphs),
        ]  # fmt: skip

    def make_vectors(self) -> int:
        from readers.htk.scp import write_feature_list, write_pairs
        from recipes.an4 import prepare

        lost = 0
        files: dict[str, list[tuple[str, Utterance, Path]]] = {}
        for warp in prepare.WARPS:
            copy = prepare.warp_name(warp)
            config, listed = (self.vectors / "config" / f"{copy}.{kind}" for kind in ("hcopy", "list"))
            prepare.write_warped_config(CONFIG / "ivector.hcopy", warp, config)
            for name, utterances in self.sets.items():
                if name == "train" or warp == 1.0:
                    prefix = f"{copy}/" if name == "train" else ""
                    files.setdefault(name, []).extend(
                        (f"{prefix}{u.name}", u, self.cepstra(copy, u)) for u in utterances
                    )
            pairs = [(u.audio, path) for rows in files.values() for _, u, path in rows if path.parent.name == copy]
            write_pairs(listed, pairs)
            lost |= extract(config, listed, self.workers, report=self.out / "reports" / f"features.ivectors.{copy}")
        for name, rows in files.items():
            report = write_feature_list(self.vectors / f"{name}.mfcc.scp", [(key, path) for key, _, path in rows])
            lost |= account(self.out, report, f"lists.ivectors.{name}")
        plain = [(u.name, self.cepstra("plain", u)) for u in self.sets["train"]]
        lost |= account(self.out, write_feature_list(self.vectors / "plain.mfcc.scp", plain), "lists.ivectors.plain")
        model = self.vectors / "an4.ivector"
        training = ivectors.ExtractorOptions(gaussians=self.gaussians, dim=self.values)
        listed = self.vectors / "plain.mfcc.scp"
        estimation = ivectors.IvectorTrainOptions(features=listed, training=training, output=model)
        lost |= call("ivector", estimation, workers=self.workers)
        for name in files:
            extraction = ivectors.IvectorExtractOptions(
                model=model, features=self.vectors / f"{name}.mfcc.scp", out=self.vectors / "utterances",
                scp=self.vector_list(name),
            )  # fmt: skip
            lost |= call("ivector", extraction, workers=self.workers)
        return lost

    def cepstra(self, copy: str, utterance: Utterance) -> Path:
        return self.vectors / "mfcc" / copy / f"{utterance.name}.mfc"

    def vector_list(self, name: str) -> Path:
        """Return the list of the i-vectors of a set."""
        return self.vectors / f"{name}.scp"

    @property
    def evaluation(self) -> Evaluation:
        return replace(super().evaluation, ivectors=self.vector_list)

    def train_tied(self) -> int:
        settings = (
            f"SenoneList={self.senones}",
            f"SenoneLabels={self.labels}",
            f"NumSenones={count_lines(self.senones)}",
        )
        return cntk(self.system_arguments(*settings))

    def system_arguments(self, *settings: str) -> list[str]:
        return [
            f"configFile={CONFIG / 'ivector.cntk'}", f"ExpDir={self.out}", f"WorkDir={self.home}",
            f"ScriptDir={CONFIG}", f"Vectors={self.vectors}", f"VectorDim={self.values}",
            f"randomSeed={self.seed}", "extendTraining=true", *settings, *self.overrides,
        ]  # fmt: skip
