"""Criteria and error counts of a network over a data set (CNTK book 3.5.3 and 7.1.8)."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from acoustic.descriptions.opening import NetworkSource, open_network
from acoustic.engine.engine import Engine
from acoustic.engine.inputs import check_inputs
from acoustic.engine.pair_engine import AnyEngine
from acoustic.network.network import Network
from acoustic.nodes.base import Node
from acoustic.nodes.noise_contrastive import NONE
from acoustic.nodes.properties import CROSS_ENTROPY, NOISE_CONTRASTIVE
from readers.common.report import Log, Progress, RunReport, silent
from readers.config.options import Options, option
from readers.errors import ModelError
from readers.minibatches.base import reader_report


@dataclass(frozen=True, kw_only=True)
class EvaluationOptions(Options):
    """Options of an evaluation."""

    trace_level: int = option(0, "0: few lines in the log, 1: more")
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


@dataclass(frozen=True, eq=False)
class EvaluationResult:
    """The outcome of an evaluation.

    Attributes
    ----------
    figures : dict of str to float
        Average per frame of each evaluation node and criterion, in this order.
    num_frames : int
    report : RunReport
        The utterances, or records, of the reader, and those that it skipped.
    """

    figures: dict[str, float]
    num_frames: int
    report: RunReport


@dataclass
class EvaluationTotals:
    """Sums of criterion and evaluation values over the frames of several minibatches.

    Attributes
    ----------
    names : sequence of str
        The nodes.
    figures : dict of str to float
        Name of the node -> sum.
    num_frames, num_minibatches : int
    """

    names: Sequence[str]
    figures: dict[str, float] = field(init=False)  # node name: sum
    num_frames: int = 0
    num_minibatches: int = 0

    def __post_init__(self) -> None:
        self.figures = dict.fromkeys(self.names, 0.0)

    def add(self, values: dict[str, float], num_frames: int) -> None:
        """Add the values of one minibatch, which are sums over its frames."""
        for name, value in values.items():
            self.figures[name] += value
        self.num_frames += num_frames
        self.num_minibatches += 1

    def averages(self) -> dict[str, float]:
        """Return the values per frame."""
        return {name: total / max(self.num_frames, 1) for name, total in self.figures.items()}


def figure_text(name: str, total: float, count: int) -> str:
    """Return `name = average * count` with eight decimals, or in exponential form, as the tool prints a criterion.

    `total` is the sum over `count` frames. A name that ends in "s" counts errors, which are shown in percent.
    """
    average = total / count if count else 0.0
    if name.endswith("s"):
        return f"{name} = {100 * average:.3f}% * {count}"
    exponential = "e" in f"{average:.8g}"
    return f"{name} = {average:.8e} * {count}" if exponential else f"{name} = {average:.8f} * {count}"


def figures_text(totals: EvaluationTotals) -> str:
    """Return the figures of all nodes, separated by semicolons."""
    return "; ".join(figure_text(name, total, totals.num_frames) for name, total in totals.figures.items())


def scalar(engine: AnyEngine, name: str) -> float:
    """Return the value of a criterion or evaluation node after a forward pass."""
    return float(engine.value(name).item())


def evaluation_nodes(network: Network, names: Sequence[str] = ()) -> list[str]:
    """Return the nodes to evaluate: `names`, or else all evaluation nodes followed by all criteria.

    Raises
    ------
    ModelError
        If there is no such node, or one of them is not a scalar.
    """
    names = list(names) or [*network.evaluations, *network.criteria]
    if not names:
        raise ModelError("the network has no evaluation or criterion node; expected evalNodeNames")
    for name in names:
        node = network[name]
        if network.shapes[node.name] != (1, 1):
            raise ModelError(f"{node.where}: {network.shapes[node.name]}; expected a scalar, such as a criterion")
    return list(dict.fromkeys(network[name].name for name in names))


def sum_figures(
    engine: AnyEngine,
    minibatches: Iterable[Any],
    names: Sequence[str],
    each: Callable[[dict[str, float], int], None] = lambda figures, num_frames: None,
) -> EvaluationTotals:
    """Run the minibatches forward without dropout and sum the values of scalar nodes.

    Parameters
    ----------
    engine : Engine or PairEngine
        The network.
    minibatches : iterable of Minibatch
        The data.
    names : sequence of str
        Scalar nodes to sum.
    each : callable
        Called as each(figures, frames) with the sums of every minibatch.

    Returns
    -------
    EvaluationTotals

    Raises
    ------
    ModelError
        If there is no frame, because an error of 0 would look perfect.
    """
    totals = EvaluationTotals(names)
    for minibatch in minibatches:
        engine.forward(minibatch.matrices, layout=getattr(minibatch, "layout", None))
        figures = {name: scalar(engine, name) for name in names}
        totals.add(figures, minibatch.num_frames)
        each(figures, minibatch.num_frames)
    if not totals.num_frames:
        raise ModelError("the reader gave no frame to evaluate; expected at least one")
    return totals


def evaluate(
    network: NetworkSource,
    reader: Any,
    options: EvaluationOptions = EvaluationOptions(),
    *,
    progress: Progress = silent,
    log: Log = silent,
) -> EvaluationResult:
    """Compute criteria and errors of a network on a data set.

    Parameters
    ----------
    network : Network, str or Path
        The network, or its model file.
    reader : readers.minibatches.base.Reader
        The data.
    options : EvaluationOptions
    progress : callable
        Called as ``progress(frames done, frames)``.
    log : callable
        Receives the lines of the log.

    Returns
    -------
    EvaluationResult

    Raises
    ------
    ModelError
        If there is nothing to evaluate, or the reader gives no frame.
    ShapeError
        If the streams of the reader do not match the inputs of the network.

    Examples
    --------
    >>> evaluate("exp/dnn", reader).figures["EvalErrorPrediction"]
    0.31
    """
    network = open_network(network)
    for node in network.nodes.values():
        if options.noise_mode and node.has(NOISE_CONTRASTIVE):
            node.settings["evalMode"] = options.noise_mode
    names = evaluation_nodes(network, options.names)
    engine = Engine(network, names)
    check_inputs(engine, reader)
    perplexities = [name for name in names if _has_perplexity(network[name])]
    totals = EvaluationTotals(names)
    window = EvaluationTotals(names)

    def show_window() -> None:
        nonlocal window
        if options.trace_level > 0 and window.num_minibatches:
            log(result_line(totals.num_minibatches - window.num_minibatches, window, perplexities))
        window = EvaluationTotals(names)

    def each(figures: dict[str, float], num_frames: int) -> None:
        totals.add(figures, num_frames)
        window.add(figures, num_frames)
        if totals.num_minibatches % options.show_every == 0:
            show_window()
        progress(totals.num_frames, options.epoch_size or reader.num_frames)

    sum_figures(engine, reader.minibatches(0, options.minibatch_size[0], options.epoch_size), names, each)
    show_window()
    log(f"Final Results: {result_line(0, totals, perplexities)}")
    return EvaluationResult(totals.averages(), totals.num_frames, reader_report(reader))


def _has_perplexity(node: Node) -> bool:
    """Whether exp of a criterion's average is a perplexity, or what takes its place without normalisation."""
    if node.has(NOISE_CONTRASTIVE):
        return node.settings["evalMode"] != NONE
    return node.has(CROSS_ENTROPY)


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
