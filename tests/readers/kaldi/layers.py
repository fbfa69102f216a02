"""Small nnet3 networks of the layers of Kaldi's recipes: LSTMs with delays, and convolutions over time and height."""

import struct

import numpy as np

from tests.readers.kaldi.models import NATURAL, put_affine, put_linear, put_statistics, put_tdnn, put_updatable

CONVOLUTION = "TimeHeightConvolutionComponent"


def put_lstm(writer, params, dropout):
    cells = params.shape[1]
    put_updatable(writer).token("<Params>").matrix(params)
    writer.token("<ValueAvg>").matrix(np.zeros((5, cells)), "f8").token("<DerivAvg>").matrix(np.zeros((5, cells)), "f8")
    writer.token("<SelfRepairConfig>").vector([0.05] * 10).token("<SelfRepairProb>").vector([0] * 5)
    if dropout is not None:
        writer.token("<UseDropout>").boolean(dropout)
    writer.token("<Count>").number(0.0, double=True)


def put_truncation(writer, rows, scale=None):
    writer.token("<Dim>").integer(rows)
    if scale is not None:
        writer.token("<Scale>").number(scale)
    writer.token("<ClippingThreshold>").number(30.0).token("<ZeroingThreshold>").number(15.0)
    writer.token("<ZeroingInterval>").integer(20).token("<RecurrenceInterval>").integer(3)
    for label in ("ElementsClipped", "ElementsZeroed", "ElementsProcessed", "ZeroingBoundaries"):
        writer.token(f"<Num{label}>").number(0.0, double=True)


def put_clipping(writer, rows):
    writer.token("<Dim>").integer(rows).token("<ClippingThreshold>").number(30.0)
    writer.token("<NormBasedClipping>").boolean(True)
    writer.token("<NumElementsClipped>").integer(0).token("<NumElementsProcessed>").integer(0)
    writer.token("<NumSelfRepaired>").integer(0).token("<NumBackpropped>").integer(0)


def put_mask(writer, proportion):
    writer.token("<OutputDim>").integer(3).token("<DropoutProportion>").number(proportion)
    writer.token("<TestMode>").boolean(True)


def put_product(writer, in_rows, out_rows):
    writer.token("<InputDim>").integer(in_rows).token("<OutputDim>").integer(out_rows)


def put_per_element(writer, token, values):
    put_updatable(writer).token(token).vector(values)


def put_normalisation(writer, rows, block, rms):
    writer.token("<Dim>").integer(rows).token("<BlockDim>").integer(block).token("<TargetRms>").number(rms)
    writer.token("<AddLogStddev>").boolean(False)


def put_permutation(writer, order):
    writer.token("<ColumnMap>").integers(order)


def put_old_dropout(writer, rows, proportion):
    writer.token("<Dim>").integer(rows).token("<DropoutProportion>").number(proportion)
    writer.token("<DropoutPerFrame>").boolean(False).token("<TestMode>").boolean(True)


def put_composite(writer, *inner):
    put_updatable(writer).token("<MaxRowsProcess>").integer(2048).token("<NumComponents>").integer(len(inner))
    for kind, put, *values in inner:
        writer.token(f"<{kind}>")
        put(writer, *values)
        writer.token(f"</{kind}>")


def put_convolution(writer, sizes, offsets, required, weights, bias):
    """sizes: filters in and out, heights in and out, step of heights."""
    put_updatable(writer).token("<Model>", "<ConvolutionModel>")
    tokens = ("<NumFiltersIn>", "<NumFiltersOut>", "<HeightIn>", "<HeightOut>", "<HeightSubsampleOut>")
    for token, size in zip(tokens, sizes, strict=True):
        writer.token(token).integer(size)
    numbers = [number for pair in offsets for number in pair]
    pairs = " ".join(f"{time},{height}" for time, height in offsets)
    writer.token("<Offsets>")
    writer.put(b"\4" + struct.pack(f"<i{len(numbers)}i", len(offsets), *numbers), f"[ {pairs} ]\n")
    writer.token("<RequiredTimeOffsets>").integers(required).token("</ConvolutionModel>")
    writer.token("<LinearParams>").matrix(weights).token("<BiasParams>").vector(bias)
    writer.token("<MaxMemoryMb>").number(200.0).token("<UseNaturalGradient>").boolean(True)
    writer.token("<NumMinibatchesHistory>").number(4.0).token("<AlphaInOut>").number(4.0, 4.0)
    writer.token("<RankInOut>").integer(2, 2)


def put_attention(writer, sizes, has_context):
    """sizes: heads, rows of a key and of a value, inputs before and after, frames between them, required inputs."""
    labels = ("NumHeads", "KeyDim", "ValueDim", "NumLeftInputs", "NumRightInputs", "TimeStride")
    for label, size in zip((*labels, "NumLeftInputsRequired", "NumRightInputsRequired"), sizes, strict=True):
        writer.token(f"<{label}>").integer(size)
    writer.token("<OutputContext>").boolean(has_context).token("<KeyScale>").number(0.5)
    writer.token("<StatsCount>").number(0.0, double=True).token("<EntropyStats>").vector([])
    writer.token("<PosteriorStats>").matrix(np.zeros((0, 0)))


def attention_network(seed, has_context=True):
    """Attention of 2 heads to 4 frames, of which the first and the last may be missing."""
    rng = np.random.default_rng(seed)
    lines = [
        "input-node name=input dim=3",
        "component-node name=below component=below input=input",
        "component-node name=attention component=attention input=below",
        "component-node name=last component=last input=attention",
        "output-node name=output input=last",
    ]
    rows = 14 if has_context else 6
    components = {
        "below": (NATURAL, put_affine, NATURAL, rng.normal(size=(22, 3)), rng.normal(size=22)),
        "attention": ("RestrictedAttentionComponent", put_attention, (2, 2, 3, 2, 1, 3, 1, 0), has_context),
        "last": ("LinearComponent", put_linear, rng.normal(size=(6, rows))),
    }
    return lines, components, (3, 0)


def projected_lstm(name, source, delay, rng, in_rows, dropout=None):
    """Lines and components of a fast-lstmp-layer with 2 cells, 1 recurrent and 1 other row."""
    mask = "" if dropout is None else f", {name}.mask"
    lines = [
        f"component-node name={name}.four component={name}.W "
        f"input=Append({source}, IfDefined(Offset({name}.r_trunc, {delay})))",
        f"component-node name={name}.lstm component={name}.lstm "
        f"input=Append({name}.four, IfDefined(Offset({name}.c_trunc, {delay})){mask})",
        f"dim-range-node name={name}.c input-node={name}.lstm dim-offset=0 dim=2",
        f"dim-range-node name={name}.m input-node={name}.lstm dim-offset=2 dim=2",
        f"component-node name={name}.rp component={name}.rp input={name}.m",
        f"dim-range-node name={name}.r input-node={name}.rp dim-offset=0 dim=1",
        f"component-node name={name}.cr_trunc component={name}.cr_trunc input=Append({name}.c, {name}.r)",
        f"dim-range-node name={name}.c_trunc input-node={name}.cr_trunc dim-offset=0 dim=2",
        f"dim-range-node name={name}.r_trunc input-node={name}.cr_trunc dim-offset=2 dim=1",
    ]
    components = {
        f"{name}.W": (NATURAL, put_affine, NATURAL, rng.normal(size=(8, in_rows + 1)), rng.normal(size=8)),
        f"{name}.lstm": ("LstmNonlinearityComponent", put_lstm, rng.normal(size=(3, 2)), dropout and True),
        f"{name}.rp": (NATURAL, put_affine, NATURAL, rng.normal(size=(2, 2)), rng.normal(size=2)),
        f"{name}.cr_trunc": ("BackpropTruncationComponent", put_truncation, 3, 0.85),
    }
    if dropout is not None:
        lines.insert(1, f"component-node name={name}.mask component={name}.mask input={name}.mask")
        components[f"{name}.mask"] = ("DropoutMaskComponent", put_mask, dropout)
    return lines, components


def lstm_network(seed, delays=(-3, -3)):
    """Two LSTMs with layers of time offsets around them; a context of 6 and 6 frames."""
    rng = np.random.default_rng(seed)
    below, below_components = projected_lstm("l1", "t1", delays[0], rng, 4, dropout=0.2)
    above, above_components = projected_lstm("l2", "t2.norm", delays[1], rng, 4)
    lines = [
        "input-node name=input dim=3",
        "component-node name=t1 component=t1 input=Append(Offset(input, -1), input, Offset(input, 1))",
        *below,
        "component-node name=t2 component=t2 input=l1.rp",
        "component-node name=t2.norm component=t2.norm input=t2",
        *above,
        "component-node name=last component=last input=Append(Offset(l2.rp, -2), Offset(l2.rp, 2))",
        "output-node name=output input=last objective=linear",
    ]
    components = {
        "t1": (NATURAL, put_affine, NATURAL, rng.normal(size=(4, 9)), rng.normal(size=4)),
        **below_components,
        "t2": ("TdnnComponent", put_tdnn, [-3, 3], rng.normal(size=(4, 4)), rng.normal(size=4)),
        "t2.norm": ("NormalizeComponent", put_normalisation, 4, 4, 0.5),
        **above_components,
        "last": ("AffineComponent", put_affine, "AffineComponent", rng.normal(size=(6, 4)), rng.normal(size=6)),
    }
    return lines, components, (6, 6)


def old_lstm_network(seed, delay=-3):
    """An lstm-layer of single components, whose 2 cells pass through gradient clipping."""
    rng = np.random.default_rng(seed)
    past = f"IfDefined(Offset(c, {delay}))"
    lines = ["input-node name=input dim=3"]
    components = {}
    for gate, kind in (("i", "Sigmoid"), ("f", "Sigmoid"), ("o", "Sigmoid"), ("g", "Tanh")):
        lines.append(
            f"component-node name={gate}1 component=W_{gate} "
            f"input=Append(Offset(input, -1), input, IfDefined(Offset(r, {delay})))"
        )
        weights = rng.normal(size=(2, 8)), rng.normal(size=2)
        components[f"W_{gate}"] = (NATURAL, put_affine, NATURAL, *weights)
        components[gate] = (f"{kind}Component", put_statistics, 2)
        if gate == "g":
            lines.append("component-node name=g component=g input=g1")
            continue
        cell = "c" if gate == "o" else past
        kind = "NaturalGradientPerElementScaleComponent" if gate == "o" else "PerElementScaleComponent"
        components[f"w_{gate}"] = (kind, put_per_element, "<Params>", rng.normal(size=2))
        lines.append(f"component-node name={gate}2 component=w_{gate} input={cell}")
        lines.append(f"component-node name={gate} component={gate} input=Sum({gate}1, {gate}2)")
    lines += [
        f"component-node name=c1 component=product input=Append(f, {past})",
        "component-node name=c2 component=product input=Append(i, g)",
        "component-node name=c component=clip input=Sum(c1, c2)",
        "component-node name=h component=h input=c",
        "component-node name=m component=product input=Append(o, h)",
        "component-node name=r component=clip input=m",
        "component-node name=last component=last input=Append(Offset(r, 1), m)",
        "output-node name=output input=last",
    ]
    components |= {
        "product": ("ElementwiseProductComponent", put_product, 4, 2),
        "clip": ("ClipGradientComponent", put_clipping, 2),
        "h": ("TanhComponent", put_statistics, 2),
        "last": ("LinearComponent", put_linear, rng.normal(size=(6, 4))),
    }
    return lines, components, (1, 1)


def convolutional_network(seed):
    """Two convolutions, whose second one sees frames that may be missing, and components of older recipes."""
    rng = np.random.default_rng(seed)
    first = [(time, height) for time in (-1, 0, 1) for height in (-1, 0, 1)]
    second = [(-2, -1), (-2, 0), (0, 0), (2, -1), (2, 1)]
    lines = [
        "input-node name=input dim=5",
        "component-node name=cnn1 component=cnn1 input=input",
        "component-node name=relu component=relu input=cnn1",
        "component-node name=cnn2 component=cnn2 input=relu",
        "component-node name=permuted component=permuted input=Append(cnn2, IfDefined(Offset(input, -3)))",
        "component-node name=norm component=norm input=permuted",
        "component-node name=dropout component=dropout input=norm",
        "component-node name=composite component=composite input=Sum(dropout, Const(0.25, 14))",
        "output-node name=output input=Scale(0.5, composite)",
    ]
    inner = [
        ("PerElementOffsetComponent", put_per_element, "<Offsets>", rng.normal(size=14)),
        ("AffineComponent", put_affine, "AffineComponent", rng.normal(size=(6, 14)), rng.normal(size=6)),
        ("SigmoidComponent", put_statistics, 6),
    ]
    components = {
        "cnn1": (
            CONVOLUTION, put_convolution, (1, 2, 5, 5, 1), first, [-1, 0, 1], rng.normal(size=(2, 9)),
            rng.normal(size=2),
        ),
        "relu": ("RectifiedLinearComponent", put_statistics, 10),
        "cnn2": (
            CONVOLUTION, put_convolution, (2, 3, 5, 3, 2), second, [0], rng.normal(size=(3, 10)), rng.normal(size=3)
        ),
        "permuted": ("PermuteComponent", put_permutation, rng.permutation(14).tolist()),
        "norm": ("NormalizeComponent", put_normalisation, 14, 7, 2.0),
        "dropout": ("DropoutComponent", put_old_dropout, 14, 0.25),
        "composite": ("CompositeComponent", put_composite, *inner),
    }  # fmt: skip
    return lines, components, (1, 1)
