"""Action test, or eval: criteria and errors of a model on a data set (CNTK book 3.5.3 and 7.1.8)."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from acoustic.actions.base import Action, CommonSettings, ModelOptions, check_reader
from acoustic.engine.engine import Engine
from acoustic.network.network import Network
from acoustic.nodes.base import Node
from acoustic.nodes.noise_contrastive import NONE
from acoustic.training.evaluation import EvaluationTotals, check_inputs, evaluate, evaluation_nodes
from acoustic.training.reporting.log import figures_text
from readers.common.report import Log, Progress, RunReport
from readers.config.config import Config
from readers.config.options import option
from readers.minibatches.base import Reader, reader_report

PERPLEXITY_OF = ("CrossEntropyWithSoftmax", "CrossEntropy", "ClassBasedCrossEntropyWithSoftmax")
NOISE_CONTRASTIVE = "NCEBasedCrossEntropyWithSoftmax"


@dataclass(frozen=True, kw_only=True)
class EvaluateOptions(ModelOptions):
    """Options of action test."""

    # CNTK's 40960 frames would only take memory.
    minibatch_size: Sequence[int] = option(
        (4096,), "frames of a minibatch, on which the results do not depend; the first one counts", unit="frames",
        least=1,
    )  # fmt: skip
    epoch_size: int = option(0, "frames that are evaluated; 0: all", unit="frames", least=0, most=math.inf)
    show_every: int = option(
        100,
        "minibatches between two lines of the log",
        unit="minibatches",
        least=1,
        most=math.inf,
        cntk="numMBsToShowResult",
    )
    names: tuple[str, ...] = option(
        (), "nodes that are evaluated; by default the criteria and evaluation nodes", cntk="evalNodeNames"
    )
    noise_mode: Literal["softmax", "unnormalized", "none"] | None = option(
        None, "value of noise-contrastive estimation in evaluation; by default the model's own", cntk="nceEvalMode"
    )


class Evaluate(Action):
    """Evaluates modelPath on the data of the block reader."""

    options = EvaluateOptions

    def __init__(self, config: Config, common: CommonSettings):
        super().__init__(config, common)
        check_reader(config, "reader")

    def run(self, log: Log, progress: Progress) -> RunReport:
        network = self.network()
        for node in network.nodes.values():
            if self.settings.noise_mode and node.type_name == NOISE_CONTRASTIVE:
                node.settings["evalMode"] = self.settings.noise_mode
        names = self.roots(network)
        engine = Engine(network, names)
        with self.open_reader("reader", log, progress, order="None", network=network) as reader:
            check_inputs(engine, reader)
            self._evaluate(engine, reader, names, log, progress)
            return reader_report(reader)

    def roots(self, network: Network) -> list[str]:
        return evaluation_nodes(network, self.settings.names)

    def _evaluate(
        self, engine: Engine, reader: Reader, names: list[str], log: Log, progress: Progress
    ) -> EvaluationTotals:
        perplexities = [name for name in names if _has_perplexity(engine.network[name])]
        totals, window = EvaluationTotals(names), EvaluationTotals(names)

        def show_window() -> None:
            nonlocal window
            if self.trace_level > 0 and window.num_minibatches:
                log(result_line(totals.num_minibatches - window.num_minibatches, window, perplexities))
            window = EvaluationTotals(names)

        def each(figures: dict[str, float], num_frames: int) -> None:
            totals.add(figures, num_frames)
            window.add(figures, num_frames)
            if totals.num_minibatches % self.settings.show_every == 0:
                show_window()
            progress(totals.num_frames, self.settings.epoch_size or reader.num_frames)

        minibatches = reader.minibatches(0, self.settings.minibatch_size[0], self.settings.epoch_size)
        evaluate(engine, minibatches, names, each)
        show_window()
        log(f"Final Results: {result_line(0, totals, perplexities)}")
        return totals


def _has_perplexity(node: Node) -> bool:
    """Whether exp of a criterion's average is a perplexity, or what takes its place without normalisation."""
    if node.type_name == NOISE_CONTRASTIVE:
        return node.settings["evalMode"] != NONE
    return node.type_name in PERPLEXITY_OF


def result_line(before: int, totals: EvaluationTotals, perplexities: list[str]) -> str:
    """Return the line ``Minibatch[1-12]: err = 0.3 * 900; ce = 1.2 * 900; perplexity = 3.3``.

    `before` is the number of minibatches in earlier lines.
    """
    figures = totals.averages()
    parts = [f"; perplexity = {perplexity(figures[name]):.8f}" for name in perplexities]
    numbers = f"{before + 1}-{before + totals.num_minibatches}"
    return f"Minibatch[{numbers}]: {figures_text(totals)}{''.join(parts)}"


def perplexity(value: float) -> float:
    """Return the perplexity of a cross entropy per word (natural logarithm)."""
    return math.exp(value) if value < 700 else math.inf
