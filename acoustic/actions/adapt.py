"""Action adapt: train a model on new data, with KL regularisation towards the original model (CNTK book 3.5.2)."""

from dataclasses import dataclass
from pathlib import Path

from acoustic.actions.train import Train, TrainOptions
from acoustic.network.model_file import load_model
from acoustic.network.network import Network
from acoustic.training.procedures.adaptation import ReferenceModel
from readers.config.config import Config
from readers.config.options import option
from readers.errors import ConfigError


@dataclass(frozen=True, kw_only=True)
class AdaptOptions(TrainOptions):
    """Options of action adapt."""

    original: Path = option(help="the model that is adapted", cntk="originalModelFileName origModelFileName")
    reference_node: str = option(
        "", "node of the original model, such as PosteriorProb, with adaptationRegType=KL", cntk="refNodeName"
    )


class Adapt(Train):
    """Adapts a model.

    Reads the blocks SGD, reader and, optionally, cvReader. CNTK calls originalModelFileName origModelFileName. Without
    adaptationRegType=KL, training simply continues from a copy of the original model.
    """

    options = AdaptOptions
    blocks = ("SGD", "reader", "cvReader")
    starts_anew = False

    def _read_start(self, config: Config) -> None:
        if config.has("origModelFileName") and config.has("originalModelFileName"):
            raise ConfigError(
                f"{config.where('origModelFileName')}: origModelFileName as well as originalModelFileName; expected one"
            )
        self.original = self.settings.original
        self.reference_node = self.settings.reference_node
        if self.original.resolve() == self.model_path.resolve():
            raise ConfigError(
                f"{config.where('modelPath')}: modelPath is {self.model_path}, the original model; expected a path for "
                "the adapted one"
            )
        if self.training.adaptation_weight and not self.reference_node:
            raise ConfigError(
                f"{config.where()}: refNodeName is missing; expected a node of {self.original}, for instance "
                "PosteriorProb"
            )

    def network(self) -> Network:
        """Return a copy of the original model."""
        return load_model(self.original, self.common.precision, self.common.device)

    def reference(self) -> ReferenceModel | None:
        if not self.training.adaptation_weight:
            return None
        return ReferenceModel(self.network(), self.reference_node)
