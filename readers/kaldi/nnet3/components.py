"""Components of nnet3 networks: their fields as they are stored, and their numbers of rows.

All components are a sequence of tokens, each with its values, so that a table of tokens by component reads them.
Source: nnet-simple-component.cc, nnet-tdnn-component.cc and nnet-normalize-component.cc of Kaldi.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from readers.kaldi.objects import Floats, KaldiObjects

_READ: Mapping[str, Callable[[KaldiObjects], Any]] = {
    "integer": KaldiObjects.integer,
    "number": KaldiObjects.number,
    "boolean": KaldiObjects.boolean,
    "integers": KaldiObjects.integers,
    "vector": KaldiObjects.vector,
    "matrix": KaldiObjects.matrix,
    "two integers": lambda objects: (objects.integer(), objects.integer()),
    "two numbers": lambda objects: (objects.number(), objects.number()),
    "flag": lambda objects: True,
}


def _kinds(**names: str) -> dict[str, str]:
    """Return the kind of value of each token; the names of a kind are separated by blanks."""
    return {name: kind.replace("_", " ") for kind, text in names.items() for name in text.split()}


_UPDATABLE = _kinds(number="LearningRateFactor MaxChange L2Regularize LearningRate", boolean="IsGradient")
_GRADIENT = _kinds(
    number="NumSamplesHistory Alpha OrthonormalConstraint MaxChangePerSample UpdateCount ActiveScalingCount",
    integer="RankIn RankOut UpdatePeriod",
    boolean="UseNaturalGradient",
    two_integers="RankInOut",
    two_numbers="AlphaInOut",
)
_STATISTICS = _kinds(
    integer="Dim BlockDim",
    number="Count OderivCount NumDimsSelfRepaired NumDimsProcessed SelfRepairLowerThreshold SelfRepairUpperThreshold "
    "SelfRepairScale",
    vector="ValueAvg DerivAvg OderivRms",
)
_AFFINE = _UPDATABLE | _GRADIENT | _kinds(matrix="LinearParams", vector="BiasParams")
_LINEAR = _UPDATABLE | _GRADIENT | _kinds(matrix="Params")

# Fields by type: those that it must have, then the kinds of all.
COMPONENTS: Mapping[str, tuple[tuple[str, ...], Mapping[str, str]]] = {
    "FixedAffineComponent": (("LinearParams", "BiasParams"), _AFFINE),
    "AffineComponent": (("LinearParams", "BiasParams"), _AFFINE),
    "NaturalGradientAffineComponent": (("LinearParams", "BiasParams"), _AFFINE),
    "LinearComponent": (("Params",), _LINEAR),
    "TdnnComponent": (("TimeOffsets", "LinearParams", "BiasParams"), _AFFINE | _kinds(integers="TimeOffsets")),
    "FixedScaleComponent": (("Scales",), _kinds(vector="Scales")),
    "FixedBiasComponent": (("Bias",), _kinds(vector="Bias")),
    "ScaleAndOffsetComponent": (
        ("Dim", "Scales", "Offsets"),
        _UPDATABLE | _kinds(integer="Dim Rank", vector="Scales Offsets", boolean="UseNaturalGradient"),
    ),
    "BatchNormComponent": (
        ("Dim", "BlockDim", "Epsilon", "TargetRms", "Count", "StatsMean", "StatsVar"),
        _kinds(
            integer="Dim BlockDim", number="Epsilon TargetRms Count", boolean="TestMode", vector="StatsMean StatsVar"
        ),
    ),
    "NoOpComponent": (("Dim",), _STATISTICS | _kinds(number="BackpropScale")),
    "DropoutComponent": (
        ("Dim",),
        _kinds(integer="Dim", number="DropoutProportion", boolean="DropoutPerFrame TestMode"),
    ),
    "GeneralDropoutComponent": (
        ("Dim",),
        _kinds(
            integer="Dim BlockDim TimePeriod SpecAugmentMaxRegions",
            number="DropoutProportion SpecAugmentMaxProportion",
            flag="TestMode Continuous",
        ),
    ),
    "SpecAugmentTimeMaskComponent": (
        ("Dim",),
        _kinds(integer="Dim TimeMaskMaxFrames", number="ZeroedProportion", flag="TestMode"),
    ),
} | {
    f"{name}Component": (("Dim",), _STATISTICS)
    for name in ("RectifiedLinear", "Sigmoid", "Tanh", "Softmax", "LogSoftmax")
}


@dataclass(frozen=True)
class Component:
    """A component.

    Attributes
    ----------
    kind : str
        A key of COMPONENTS.
    fields : dict of str to int, float, bool, tuple or array
        Values by the name of their token, without ``<>``.
    where : str
        File, byte, name and type, for messages.
    in_rows, out_rows : int
        Of its input and output.
    """

    kind: str
    fields: Mapping[str, Any]
    where: str
    in_rows: int = field(default=0, compare=False)
    out_rows: int = field(default=0, compare=False)

    @property
    def matrix(self) -> Floats:
        """The weights (out_rows, columns) of an affine, linear or TDNN component."""
        matrix: Floats = self.fields["Params" if self.kind == "LinearComponent" else "LinearParams"]
        return matrix

    @property
    def bias(self) -> Floats:
        """The bias of such a component (out_rows,), or (0,) for none."""
        bias: Floats = self.fields.get("BiasParams", np.zeros(0))
        return bias

    @property
    def offsets(self) -> list[int]:
        """The frames that it sees; 0 for all but TDNN components."""
        offsets: list[int] = self.fields["TimeOffsets"].tolist() if "TimeOffsets" in self.fields else [0]
        return offsets


def read_component(objects: KaldiObjects, name: str) -> Component:
    """Read a component from its opening to its closing token.

    Parameters
    ----------
    objects : KaldiObjects
    name : str
        Of the component, for messages.

    Returns
    -------
    Component

    Raises
    ------
    FormatError
        For an unknown component or token, and for parameters whose sizes do not fit.
    """
    begin = objects.position
    kind = objects.token()[1:-1]
    if kind not in COMPONENTS:
        objects.refuse(
            f"component {name!r} is a {kind}",
            f"{', '.join(key.removesuffix('Component') for key in COMPONENTS)}",
            begin,
        )
    required, kinds = COMPONENTS[kind]
    fields: dict[str, Any] = {}
    where = f"{objects.path}:{begin}: {name}, a {kind}"
    while True:
        position = objects.position
        token = objects.token()
        label = token[1:-1]
        if token == f"</{kind}>":
            break
        if token == f"<{kind}>" and not fields:
            continue  # old files have it twice
        if token != f"<{label}>" or label not in kinds or label in fields:
            objects.refuse(f"{token!r} in component {name!r}, a {kind}", f"its other fields, or </{kind}>", position)
        fields[label] = _READ[kinds[label]](objects)
    missing = [label for label in required if label not in fields]
    if missing:
        objects.refuse(f"component {name!r}, a {kind}, without <{missing[0]}>", "that field", begin)
    fault, in_rows, out_rows = _sizes(Component(kind, fields, where))
    if fault or min(in_rows, out_rows) < 1:
        objects.refuse(
            f"component {name!r}, a {kind}: {fault or f'{in_rows} rows in, {out_rows} out'}", "sizes that fit", begin
        )
    return Component(kind, fields, where, in_rows, out_rows)


def _sizes(component: Component) -> tuple[str, int, int]:
    """Return what does not fit, if anything, and the rows of input and output."""
    fields = component.fields
    if "LinearParams" in fields or "Params" in fields:
        rows, cols = component.matrix.shape
        offsets = component.offsets
        fault = ""
        if len(component.bias) not in (rows, *([0] if component.kind in ("TdnnComponent", "LinearComponent") else [])):
            fault = f"{len(component.bias)} biases of {rows} rows"
        elif not offsets or cols % len(offsets) or offsets != sorted(set(offsets)):
            fault = f"{cols} columns for offsets {offsets[:10]}"
        return fault, cols // max(len(offsets), 1), rows
    vectors = {
        "FixedScaleComponent": ("Scales",),
        "FixedBiasComponent": ("Bias",),
        "ScaleAndOffsetComponent": ("Scales", "Offsets"),
        "BatchNormComponent": ("StatsMean", "StatsVar"),
    }.get(component.kind, ())
    lengths = {len(fields[label]) for label in vectors}
    rows = fields["Dim"] if "Dim" in fields else max(lengths)
    if len(lengths) > 1 or any(length < 1 or rows % length for length in lengths):
        return f"vectors of {' and '.join(map(str, sorted(lengths)))} values for {rows} rows", rows, rows
    if component.kind == "BatchNormComponent" and (fields["Count"] <= 0 or fields["Epsilon"] <= 0):
        return f"statistics of {fields['Count']:g} frames, epsilon {fields['Epsilon']:g}", rows, rows
    return "", rows, rows
