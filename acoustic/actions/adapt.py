"""Action adapt: train a model on new data, with KL regularisation towards the original model (CNTK book 3.5.2)."""

from acoustic.actions.train import Train
from acoustic.network.model_file import load_model
from acoustic.network.network import Network
from acoustic.training.procedures.adaptation import ReferenceModel
from readers.config.config import Config
from readers.errors import ConfigError


class Adapt(Train):
    """Adapts a model.

    Reads the blocks SGD, reader and, optionally, cvReader, and originalModelFileName, refNodeName and makeMode. CNTK
    calls originalModelFileName origModelFileName. Without adaptationRegType=KL, training simply continues from a copy
    of the original model.
    """

    blocks = ("SGD", "reader", "cvReader")
    starts_anew = False

    def _read_start(self, config: Config) -> None:
        toolkits = config.has("origModelFileName")
        if toolkits and config.has("originalModelFileName"):
            raise ConfigError(
                f"{config.where('origModelFileName')}: origModelFileName as well as originalModelFileName; expected one"
            )
        self.original = config.path("origModelFileName" if toolkits else "originalModelFileName")
        if self.original.resolve() == self.model_path.resolve():
            raise ConfigError(
                f"{config.where('modelPath')}: modelPath is {self.model_path}, the original model; expected a path for "
                "the adapted one"
            )
        self.reference_node = config.text("refNodeName", "")
        if self.options.adaptation_weight and not self.reference_node:
            raise ConfigError(
                f"{config.where()}: refNodeName is missing; expected a node of {self.original}, for instance "
                "PosteriorProb"
            )

    def network(self) -> Network:
        """Return a copy of the original model."""
        return load_model(self.original, self.common.precision, self.common.device)

    def reference(self) -> ReferenceModel | None:
        if not self.options.adaptation_weight:
            return None
        return ReferenceModel(self.network(), self.reference_node)
