"""Components of nnet3 networks: their fields as they are stored, and their numbers of rows.

All components are a sequence of tokens, each with its values, so that a table of tokens by component reads them.
Source: nnet-simple-component.cc, nnet-tdnn-component.cc, nnet-normalize-component.cc, nnet-general-component.cc,
nnet-combined-component.cc and nnet-convolutional-component.cc of Kaldi.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from readers.kaldi.nnet3.convolution import FURTHEST, ConvolutionModel, read_convolution_model
from readers.kaldi.objects import Floats, KaldiObjects

MOST_INNER = 1000  # components of a composite one
GATES = 5  # rows of each cell that the nonlinearity of LSTMs takes: three gates, the input and the cell before
MOST_PARTS = 1000  # blocks and factors of a value, heads of attention and its frames
MOST_REORDERED = 6000  # rows of what is permuted, and of the input of attention: a matrix does so
MASKS = 3  # rows that scale the gates for dropout

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
    "convolution": read_convolution_model,
    "components": lambda objects: tuple(_inner_components(objects)),
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
_PER_ELEMENT = _UPDATABLE | _GRADIENT | _kinds(vector="Params Offsets", integer="Rank", number="MaxChangePerMinibatch")
_ATTENTION = (
    *("NumHeads", "KeyDim", "ValueDim", "TimeStride"),
    *("NumLeftInputs", "NumRightInputs", "NumLeftInputsRequired", "NumRightInputsRequired"),
)

# Fields by type: those that it must have, then the kinds of all.
COMPONENTS: Mapping[str, tuple[tuple[str, ...], Mapping[str, str]]] = {
    "FixedAffineComponent": (("LinearParams", "BiasParams"), _AFFINE),
    "AffineComponent": (("LinearParams", "BiasParams"), _AFFINE),
    "NaturalGradientAffineComponent": (("LinearParams", "BiasParams"), _AFFINE),
    "LinearComponent": (("Params",), _LINEAR),
    "TdnnComponent": (("TimeOffsets", "LinearParams", "BiasParams"), _AFFINE | _kinds(integers="TimeOffsets")),
    "TimeHeightConvolutionComponent": (
        ("Model", "LinearParams", "BiasParams"),
        _AFFINE | _kinds(convolution="Model", number="MaxMemoryMb NumMinibatchesHistory"),
    ),
    "FixedScaleComponent": (("Scales",), _kinds(vector="Scales")),
    "FixedBiasComponent": (("Bias",), _kinds(vector="Bias")),
    "ScaleAndOffsetComponent": (
        ("Dim", "Scales", "Offsets"),
        _UPDATABLE | _kinds(integer="Dim Rank", vector="Scales Offsets", boolean="UseNaturalGradient"),
    ),
    "PerElementScaleComponent": (("Params",), _PER_ELEMENT),
    "NaturalGradientPerElementScaleComponent": (("Params",), _PER_ELEMENT),
    "PerElementOffsetComponent": (("Offsets",), _PER_ELEMENT | _kinds(integer="Dim")),
    "PermuteComponent": (("ColumnMap",), _kinds(integers="ColumnMap")),
    "ElementwiseProductComponent": (("InputDim", "OutputDim"), _kinds(integer="InputDim OutputDim")),
    "LstmNonlinearityComponent": (
        ("Params",),
        _UPDATABLE
        | _kinds(
            matrix="Params ValueAvg DerivAvg",
            vector="SelfRepairConfig SelfRepairProb",
            boolean="UseDropout",
            number="Count",
        ),
    ),
    "BackpropTruncationComponent": (
        ("Dim",),
        _kinds(
            integer="Dim ZeroingInterval RecurrenceInterval",
            number="Scale ClippingThreshold ZeroingThreshold NumElementsClipped NumElementsZeroed NumElementsProcessed "
            "NumZeroingBoundaries",
        ),
    ),
    "ClipGradientComponent": (
        ("Dim",),
        _kinds(
            integer="Dim NumElementsClipped NumElementsProcessed NumSelfRepaired NumBackpropped",
            number="ClippingThreshold SelfRepairClippedProportionThreshold SelfRepairTarget SelfRepairScale",
            boolean="NormBasedClipping",
        ),
    ),
    "RestrictedAttentionComponent": (
        (*_ATTENTION, "OutputContext", "KeyScale"),
        _kinds(
            integer=" ".join(_ATTENTION),
            boolean="OutputContext",
            number="KeyScale StatsCount",
            vector="EntropyStats",
            matrix="PosteriorStats",
        ),
    ),
    "CompositeComponent": (
        ("NumComponents",),
        _UPDATABLE | _kinds(integer="MaxRowsProcess", components="NumComponents"),
    ),
    "NormalizeComponent": (
        (),
        _STATISTICS | _kinds(integer="InputDim", number="TargetRms", boolean="AddLogStddev"),
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
    "DropoutMaskComponent": (
        ("OutputDim",),
        _kinds(integer="OutputDim", number="DropoutProportion", boolean="TestMode", flag="Continuous"),
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
        """The frames that it sees; 0 for all but TDNN components, convolutions and attention."""
        if "Model" in self.fields:
            return self.convolution.time_offsets
        if "TimeStride" in self.fields:
            return self._attended(self.fields["NumLeftInputs"], self.fields["NumRightInputs"])
        offsets: list[int] = self.fields["TimeOffsets"].tolist() if "TimeOffsets" in self.fields else [0]
        return offsets

    @property
    def required_offsets(self) -> list[int]:
        """Those of the offsets whose frames cannot be missing."""
        if "TimeStride" in self.fields:
            return self._attended(self.fields["NumLeftInputsRequired"], self.fields["NumRightInputsRequired"])
        return self.convolution.required if "Model" in self.fields else self.offsets

    def _attended(self, num_before: int, num_after: int) -> list[int]:
        """Return the frames of so many inputs on each side."""
        return [number * self.fields["TimeStride"] for number in range(-num_before, num_after + 1)]

    @property
    def convolution(self) -> ConvolutionModel:
        """The geometry of a convolution."""
        model: ConvolutionModel = self.fields["Model"]
        return model

    @property
    def inner(self) -> tuple["Component", ...]:
        """The components of which a composite one consists, in order."""
        inner: tuple[Component, ...] = self.fields["NumComponents"]
        return inner


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


def _inner_components(objects: KaldiObjects) -> Iterator[Component]:
    """Read the components of which a composite one consists, after their number."""
    for number in range(1, objects.integer(1, MOST_INNER) + 1):
        begin = objects.position
        component = read_component(objects, f"inner component {number}")
        if component.kind in ("CompositeComponent", "DropoutMaskComponent") or component.offsets != [0]:
            objects.refuse(f"a {component.kind} in a CompositeComponent", "one that takes its own frame", begin)
        yield component


def _sizes(component: Component) -> tuple[str, int, int]:
    """Return what does not fit, if anything, and the rows of input and output."""
    fields = component.fields
    match component.kind:
        case "TimeHeightConvolutionComponent":
            model = component.convolution
            expected = (model.num_filters_out, len(model.offsets) * model.num_filters_in)
            if component.matrix.shape != expected or len(component.bias) != model.num_filters_out:
                rows, cols = component.matrix.shape
                return f"{rows}x{cols} weights and {len(component.bias)} biases of {expected} weights", 0, 0
            return "", model.num_filters_in * model.height_in, model.num_filters_out * model.height_out
        case "LstmNonlinearityComponent":
            rows, cells = fields["Params"].shape
            fault = "" if rows == MASKS else f"{rows} rows of parameters, not {MASKS}"
            return fault, GATES * cells + (MASKS if fields.get("UseDropout") else 0), 2 * cells
        case "DropoutMaskComponent":
            return "", fields["OutputDim"], fields["OutputDim"]
        case "ElementwiseProductComponent":
            in_rows, out_rows = fields["InputDim"], fields["OutputDim"]
            fits = out_rows > 0 and in_rows % out_rows == 0 and in_rows // out_rows <= MOST_PARTS
            return "" if fits else f"{in_rows} rows for products of {out_rows}", in_rows, out_rows
        case "RestrictedAttentionComponent":
            heads, key_rows, value_rows, stride, before, after, needed_before, needed_after = (
                fields[label] for label in _ATTENTION
            )
            context = before + 1 + after
            in_rows = heads * (2 * key_rows + value_rows + context)
            if (
                min(heads, key_rows, value_rows, stride) < 1
                or not (0 <= needed_before <= before and 0 <= needed_after <= after)
                or max(heads, context) > MOST_PARTS
                or stride * context > FURTHEST
                or in_rows > MOST_REORDERED
                or fields["KeyScale"] <= 0
            ):
                sizes = " ".join(f"{fields[label]}" for label in _ATTENTION)
                return f"sizes {sizes}, key scale {fields['KeyScale']:g}", 0, 0
            out_rows = value_rows + (context if fields["OutputContext"] else 0)
            return "", in_rows, heads * out_rows
        case "CompositeComponent":
            pairs = pairwise(component.inner)
            fault = next((f"{a.out_rows} rows before {b.in_rows}" for a, b in pairs if a.out_rows != b.in_rows), "")
            return fault, component.inner[0].in_rows, component.inner[-1].out_rows
        case "PermuteComponent":
            rows = len(fields["ColumnMap"])
            is_map = rows <= MOST_REORDERED and np.array_equal(np.sort(fields["ColumnMap"]), np.arange(rows))
            fault = "" if is_map else f"a column map of {rows} that is no permutation of at most {MOST_REORDERED}"
            return fault, rows, rows
        case "NormalizeComponent":
            rows = fields.get("Dim", fields.get("InputDim", 0))
            block = fields.get("BlockDim", rows)
            fits = block > 0 and rows % block == 0 and rows // block <= MOST_PARTS
            fault = "" if fits else f"blocks of {block} rows"
            return fault or ("a logarithm of the deviation" if fields.get("AddLogStddev") else ""), rows, rows
    if "LinearParams" in fields or ("Params" in fields and component.kind == "LinearComponent"):
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
        "PerElementScaleComponent": ("Params",),
        "NaturalGradientPerElementScaleComponent": ("Params",),
        "PerElementOffsetComponent": ("Offsets",),
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
