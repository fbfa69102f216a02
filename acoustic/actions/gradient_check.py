"""Action gradientCheck: compare gradients with numerical derivatives, by parameter (CNTK book 3.3.1.6, eq. 2.5)."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from acoustic.actions.base import CommonSettings, ModelOptions, NetworkAction, check_reader
from acoustic.actions.described import BUILDERS, described_network
from acoustic.descriptions.opening import open_network
from acoustic.engine.engine import Engine
from acoustic.engine.inputs import check_inputs
from acoustic.network.model_file import load_model
from acoustic.network.network import Network
from acoustic.training.options import TrainingOptions
from acoustic.training.procedures.gradient_test import check_elements, report_lines
from acoustic.training.procedures.precompute import frames_alone, precompute
from readers.common.report import Log, Progress, RunReport
from readers.config.config import Config
from readers.config.options import like, option
from readers.errors import ModelError


@dataclass(frozen=True, kw_only=True)
class GradientCheckOptions(ModelOptions):
    """Options of action gradientCheck."""

    model_path: Path = option(help="the model, unless a block describes the network")
    train_criterion: str = like(TrainingOptions, "train_criterion")
    gradient_digits: int = like(TrainingOptions, "gradient_digits")
    minibatch_size: Sequence[int] = option(  # enough to find an error in a formula
        (64,), "frames of the minibatch; the first one counts", unit="frames", least=1
    )
    num_samples: int = option(
        10, "elements of each parameter whose derivatives are compared", least=1, cntk="numGradientSamples"
    )
    dropout_rate: Sequence[float] = like(TrainingOptions, "dropout_rate")


class CheckGradients(NetworkAction):
    """Checks the gradients of a described network or of modelPath on one minibatch.

    Reads the block reader and a network builder, or modelPath. It computes in double precision regardless of
    `precision`; missing statistics are computed from the minibatch. The report counts parameters; one whose derivatives
    differ in the first sigFigs digits fails.
    """

    options = GradientCheckOptions
    blocks = ("reader", *BUILDERS)
    keeps_report = False

    def __init__(self, config: Config, common: CommonSettings):
        self.from_file = not any(config.has(name) for name in BUILDERS)
        super().__init__(config, common)
        if not self.from_file:
            self._described = described_network(config)
        check_reader(config, "reader")

    def _given(self, config: Config) -> dict[str, Any]:
        return {} if self.from_file else {"model_path": "network"}

    def network(self) -> Network:
        if self.from_file:
            assert self.model_path is not None
            return load_model(self.model_path, "double", self.common.device)
        assert self._described is not None
        return open_network(self._described, "double", self.common.device, self.common.seed)

    def roots(self, network: Network) -> list[str]:
        if not self.settings.train_criterion and not network.criteria:
            raise ModelError("the network has no training criterion; expected one, or trainCriterionNodeName")
        return [network[self.settings.train_criterion].name if self.settings.train_criterion else network.criteria[0]]

    def run(self, log: Log, progress: Progress) -> RunReport:
        network = self.network()
        (criterion,) = self.roots(network)
        engine = Engine(network, [criterion])
        with self.open_reader("reader", log, progress) as reader:
            check_inputs(engine, reader)
            minibatch = next(iter(reader.minibatches(0, self.settings.minibatch_size[0], 0)), None)
            if minibatch is None:
                raise ModelError("the reader gave no minibatch; expected at least one")
            precompute(network, lambda: [frames_alone(minibatch)])
            checks = check_elements(
                engine,
                criterion,
                minibatch.matrices,
                num_samples=self.settings.num_samples,
                seed=self.common.seed,
                digits=self.settings.gradient_digits,
                dropout_rate=self.settings.dropout_rate[0],
                layout=minibatch.layout,
            )
        log(
            f"Gradient check of {criterion} over {minibatch.num_frames} frames, {self.settings.gradient_digits} digits:"
        )
        for line in report_lines(checks, self.settings.gradient_digits):
            log(line)
        report = RunReport("parameters")
        for check in checks:
            if check.agrees(self.settings.gradient_digits):
                report.done()
            else:
                report.fail(check.name, f"computed {check.computed:.10g}, numeric {check.numeric:.10g}")
        return report
