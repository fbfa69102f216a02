"""Action gradientCheck: compare gradients with numerical derivatives, by parameter (CNTK book 3.3.1.6, eq. 2.5)."""

from pathlib import Path

from acoustic.actions.base import Action, CommonSettings, check_reader
from acoustic.actions.described import BUILDERS, described_network
from acoustic.engine.engine import Engine
from acoustic.network.model_file import load_model
from acoustic.network.network import Network
from acoustic.training.evaluation import check_inputs
from acoustic.training.procedures.gradient_test import check_elements, report_lines
from acoustic.training.procedures.precompute import frames_alone, precompute
from readers.common.report import Log, Progress, RunReport
from readers.config.config import Config
from readers.config.options.names import at_least
from readers.errors import ModelError

MINIBATCH = 64  # frames, enough to find an error in a formula


class CheckGradients(Action):
    """Checks the gradients of a described network or of modelPath on one minibatch.

    Reads the block reader and a network builder, or modelPath, and trainCriterionNodeName, sigFigs, minibatchSize,
    numGradientSamples and dropoutRate. It computes in double precision regardless of `precision`; missing statistics
    are computed from the minibatch. The report counts parameters; one whose derivatives differ in the first sigFigs
    digits fails.
    """

    blocks = ("reader", *BUILDERS)
    keeps_report = False

    def __init__(self, config: Config, common: CommonSettings):
        self.from_file = not any(config.has(name) for name in BUILDERS)
        super().__init__(config, common, config.path("modelPath") if self.from_file else Path("network"))
        if not self.from_file:
            self.network_options, self.build = described_network(config)
        self.criterion = config.text("trainCriterionNodeName", "")
        self.digits = at_least(config, "sigFigs", config.int("sigFigs", 6), 1)
        self.minibatch_size = at_least(config, "minibatchSize", config.ints("minibatchSize", str(MINIBATCH))[0], 1)
        self.num_samples = at_least(config, "numGradientSamples", config.int("numGradientSamples", 10), 1)
        self.dropout_rate = config.floats("dropoutRate", "0")[0]
        check_reader(config, "reader")

    def network(self) -> Network:
        if self.from_file:
            return load_model(self.model_path, "double", self.common.device)
        return self.build(self.network_options, "double", self.common.device, self.common.seed)

    def roots(self, network: Network) -> list[str]:
        if not self.criterion and not network.criteria:
            raise ModelError("the network has no training criterion; expected one, or trainCriterionNodeName")
        return [network[self.criterion].name if self.criterion else network.criteria[0]]

    def run(self, log: Log, progress: Progress) -> RunReport:
        network = self.network()
        (criterion,) = self.roots(network)
        engine = Engine(network, [criterion])
        with self.open_reader("reader", log, progress) as reader:
            check_inputs(engine, reader)
            minibatch = next(iter(reader.minibatches(0, self.minibatch_size, 0)), None)
            if minibatch is None:
                raise ModelError("the reader gave no minibatch; expected at least one")
            precompute(network, lambda: [frames_alone(minibatch)])
            checks = check_elements(
                engine,
                criterion,
                minibatch.matrices,
                num_samples=self.num_samples,
                seed=self.common.seed,
                digits=self.digits,
                dropout_rate=self.dropout_rate,
                layout=minibatch.layout,
            )
        log(f"Gradient check of {criterion} over {minibatch.num_frames} frames, {self.digits} digits:")
        for line in report_lines(checks, self.digits):
            log(line)
        report = RunReport("parameters")
        for check in checks:
            if check.agrees(self.digits):
                report.done()
            else:
                report.fail(check.name, f"computed {check.computed:.10g}, numeric {check.numeric:.10g}")
        return report
