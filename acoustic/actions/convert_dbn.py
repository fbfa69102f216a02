"""Action convertDBN: a network from a model file of dbn.exe (CNTK book 3.7)."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from acoustic.actions.base import CommonSettings, ModelOptions, NetworkAction
from acoustic.descriptions.builders.simple import SimpleNetworkOptions, build_simple_network
from acoustic.network.model_file import save_model
from acoustic.network.network import Network
from readers.common.files import require_writable
from readers.common.report import Log, Progress, RunReport
from readers.config.config import Config
from readers.config.options import like, located_faults, option
from readers.errors import ConfigError
from readers.sources.frames.streams import describe
from readers.tables.dbn import LINEAR_LAYER, OUTPUT_LAYER, DbnModel, read_dbn


@dataclass(frozen=True, kw_only=True)
class ConvertDbnOptions(ModelOptions):
    """Options of action convertDBN: its files, and options of the simple builder."""

    dbn_path: Path = option(help="model file of dbn.exe", cntk="dbnModelPath")
    layer_types: tuple[str, ...] = like(SimpleNetworkOptions, "layer_types")
    training_criterion: str = like(SimpleNetworkOptions, "training_criterion")
    eval_criterion: str = like(SimpleNetworkOptions, "eval_criterion")
    with_dropout: bool = like(SimpleNetworkOptions, "with_dropout")
    with_prior: bool = like(SimpleNetworkOptions, "with_prior")
    init_scale: float = like(SimpleNetworkOptions, "init_scale")
    uniform_init: bool = like(SimpleNetworkOptions, "uniform_init")
    output_size: int = option(
        -1,
        "size of the output layer that is added to a pre-trained model; -1: not given",
        least=-1,
        cntk="outputLayerSize",
    )

    def __post_init__(self) -> None:
        object.__setattr__(self, "layer_types", self.layer_types or ("None",))
        super().__post_init__()


class ConvertDbn(NetworkAction):
    """Converts dbnModelPath to modelPath.

    layerTypes are the types of the layers that are not linear. initValueScale, uniformInit and needPrior are for the
    output layer that is added to a model that is only pre-trained. Nodes have the names of the simple builder.
    """

    options = ConvertDbnOptions
    model_path: Path
    blocks = ()
    keeps_report = False

    def __init__(self, config: Config, common: CommonSettings):
        super().__init__(config, common)
        require_writable(self.model_path, [self.settings.dbn_path])
        self._options((1, 1), self.settings.layer_types)  # reports faults of the options

    def run(self, log: Log, progress: Progress) -> RunReport:
        network = self.network(log)
        save_model(network, self.model_path)
        log(f"Written: {self.model_path}")
        return RunReport("models", 1)

    def makes(self) -> list[Path]:
        return [self.model_path]

    def network(self, log: Log = lambda line: None) -> Network:
        try:
            model = read_dbn(self.settings.dbn_path)
        except OSError as fault:
            where = self.config.where("dbnModelPath")
            raise ConfigError(f"{where}: dbnModelPath: {describe(fault)}; expected a model of dbn.exe") from fault
        for number, layer in enumerate(model.layers):
            rows, cols = layer.weights.shape
            log(f"DBN: layer {number}: {layer.kind}, {rows} x {cols}")
        if model.prior is None and model.layers[-1].kind == OUTPUT_LAYER and not self.settings.with_prior:
            log("warning: the file has no priors; needPrior=true adds a node for them, which training computes")
        return self._build(model)

    def _build(self, model: DbnModel) -> Network:
        sizes = [model.layers[0].weights.shape[1], *(len(layer.bias) for layer in model.layers)]
        is_whole = model.layers[-1].kind == OUTPUT_LAYER
        if not is_whole:
            if self.settings.output_size < 1:
                raise ConfigError(
                    f"{self.config.where('outputLayerSize')}: {self.settings.dbn_path} is a pre-trained model without "
                    "an output layer; expected outputLayerSize=..., the size of the one to add"
                )
            sizes.append(self.settings.output_size)
        hidden = model.layers[:-1] if is_whole else model.layers
        nonlinearities = [
            self.settings.layer_types[min(k, len(self.settings.layer_types) - 1)] for k in range(len(hidden))
        ]
        kinds = tuple(
            "None" if layer.kind == LINEAR_LAYER else kind for layer, kind in zip(hidden, nonlinearities)
        ) or ("None",)
        options = self._options(tuple(sizes), kinds, self.settings.with_prior or model.prior is not None)
        common = self.common
        network = build_simple_network(options, common.precision, common.device, common.seed)
        self._fill(network, model, sizes[0])
        return network

    def _options(
        self, sizes: tuple[int, ...], kinds: tuple[str, ...], with_prior: bool = False
    ) -> SimpleNetworkOptions:
        common = ("training_criterion", "eval_criterion", "with_dropout", "init_scale", "uniform_init")
        settings = {name: getattr(self.settings, name) for name in common}
        with located_faults(self.config):
            return SimpleNetworkOptions(sizes, kinds, normalise_features=True, with_prior=with_prior, **settings)

    @staticmethod
    def _fill(network: Network, model: DbnModel, num_inputs: int) -> None:
        def put(name: str, values: np.ndarray) -> None:
            dtype = network.backend.dtype
            network.set_value(name, np.asfortranarray(values.reshape(values.shape[0], -1), dtype))

        repeats = num_inputs // len(model.mean)  # the frames of the context window
        put("MeanOfFeatures", np.tile(model.mean, repeats))
        put("InvStdOfFeatures", np.tile(1 / model.deviation.astype(np.float64), repeats))
        for number, layer in enumerate(model.layers):
            put(f"W{number}", layer.weights)
            put(f"B{number}", layer.bias)
        if model.prior is not None:
            put("Prior", model.prior)
