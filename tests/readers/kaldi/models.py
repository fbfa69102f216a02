"""Writes Kaldi's objects, binary or text, and small models of nnet3 for tests."""

import struct

import numpy as np


class Writer:
    """The inverse of KaldiObjects: `content` is the file."""

    def __init__(self, binary):
        self.binary = binary
        self.content = b"\0B" if binary else b""

    def put(self, binary, text):
        self.content += binary if self.binary else text.encode()
        return self

    def token(self, *tokens):
        for token in tokens:
            self.content += f"{token} ".encode()
        return self

    def line(self, text):
        self.content += f"{text}\n".encode()
        return self

    def integer(self, *values):
        for value in values:
            self.put(b"\4" + struct.pack("<i", value), f"{value} ")
        return self

    def unsigned(self, value):
        return self.put(b"\xfc" + struct.pack("<I", value), f"{value} ")

    def number(self, *values, double=False):
        for value in values:
            raw = b"\x08" + struct.pack("<d", value) if double else b"\4" + struct.pack("<f", value)
            self.put(raw, f"{value!r} ")
        return self

    def boolean(self, value):
        return self.put(b"T" if value else b"F", "T " if value else "F ")

    def integers(self, values):
        raw = b"\4" + struct.pack(f"<i{len(values)}i", len(values), *values)
        return self.put(raw, f"[ {' '.join(map(str, values))} ]\n")

    def vector(self, values, dtype="f4"):
        values = np.asarray(values, dtype)
        raw = (b"FV " if dtype == "f4" else b"DV ") + b"\4" + struct.pack("<i", len(values)) + values.tobytes()
        return self.put(raw, f" [ {' '.join(map(str, values.tolist()))} ]\n")

    def matrix(self, values, dtype="f4"):
        values = np.asarray(values, dtype)
        sizes = b"".join(b"\4" + struct.pack("<i", size) for size in values.shape)
        rows = "".join(f"\n  {' '.join(map(str, row))}" for row in values.tolist())
        return self.put((b"FM " if dtype == "f4" else b"DM ") + sizes + values.tobytes(), f" [{rows} ]\n")

    def symmetric(self, values, dtype="f4"):
        values = np.asarray(values, dtype)
        packed = values[np.tril_indices(len(values))]
        raw = (b"FP " if dtype == "f4" else b"DP ") + b"\4" + struct.pack("<i", len(values)) + packed.tobytes()
        rows = "".join(f"\n{' '.join(map(str, row[: n + 1]))}" for n, row in enumerate(values.tolist()))
        return self.put(raw, f" [{rows} ]\n")


def put_transitions(writer, num_phones=3, old=False):
    """A transition model whose phones have one state, with a pdf of its own for the self-loop unless `old`."""
    phones = list(range(1, num_phones + 1))
    writer.token("<TransitionModel>", "<Topology>")
    if writer.binary:
        writer.integers(phones).integers([-1, *[0] * num_phones])
        writer.integer(*([] if old else [-1]), 1, 2, 0, *([] if old else [1]), 2)
        writer.integer(0).number(0.5).integer(1).number(0.5)
        writer.integer(-1, *([] if old else [-1]), 0)
    else:
        classes = "<PdfClass> 0" if old else "<ForwardPdfClass> 0 <SelfLoopPdfClass> 1"
        writer.line(f"\n<TopologyEntry>\n<ForPhones>\n{' '.join(map(str, phones))}\n</ForPhones>")
        writer.line(f"<State> 0 {classes} <Transition> 0 0.5 <Transition> 1 0.5 </State>\n<State> 1 </State>")
        writer.line("</TopologyEntry>")
    writer.token("</Topology>", "<Triples>" if old else "<Tuples>").integer(num_phones)
    for phone in phones:
        writer.integer(phone, 0, *([phone - 1] if old else [2 * phone - 2, 2 * phone - 1]))
    writer.token("</Triples>" if old else "</Tuples>", "<LogProbs>").vector([0, *[-0.5] * (2 * num_phones)])
    return writer.token("</LogProbs>", "</TransitionModel>")


def put_node(writer, node):
    """A node: None, a pdf, (key, [child, ...]) or (key, members, yes, no)."""
    if node is None:
        return writer.token("NULL")
    if isinstance(node, int):
        return writer.token("CE").integer(node)
    if len(node) == 2:
        writer.token("TE").integer(node[0]).unsigned(len(node[1])).token("(")
        for child in node[1]:
            put_node(writer, child)
        return writer.token(")")
    writer.token("SE").integer(node[0]).integers(sorted(node[1])).token("{")
    return put_node(put_node(writer, node[2]), node[3]).token("}")


def put_tree(writer, width, centre, root):
    writer.token("ContextDependency").integer(width, centre).token("ToPdf")
    return put_node(writer, root).token("EndContextDependency")


def answer(node, event):
    """The pdf of a node for {key: value}; -1 without an answer."""
    if node is None or isinstance(node, int):
        return -1 if node is None else node
    value = event[node[0]]
    if len(node) == 2:
        return answer(node[1][value], event) if value < len(node[1]) else -1
    return answer(node[2] if value in node[1] else node[3], event)


def put_gaussians(writer, mixtures):
    """The mixtures of pdfs, each (weights, means, variances)."""
    writer.token("<DIMENSION>").integer(mixtures[0][1].shape[1]).token("<NUMPDFS>").integer(len(mixtures))
    for weights, means, variances in mixtures:
        writer.token("<DiagGMM>", "<GCONSTS>").vector(np.zeros(len(weights))).token("<WEIGHTS>").vector(weights)
        writer.token("<MEANS_INVVARS>").matrix(means / variances).token("<INV_VARS>").matrix(1 / variances)
        writer.token("</DiagGMM>")
    return writer


def put_updatable(writer):
    return writer.token("<MaxChange>").number(0.75).token("<LearningRate>").number(0.001)


NATURAL = "NaturalGradientAffineComponent"


def put_dim(writer, rows):
    writer.token("<Dim>").integer(rows)


def put_affine(writer, kind, weights, bias):
    if kind != "FixedAffineComponent":
        put_updatable(writer)
    writer.token("<LinearParams>").matrix(weights).token("<BiasParams>").vector(bias)
    if kind.startswith("Natural"):
        writer.token("<RankIn>").integer(2).token("<RankOut>").integer(2).token("<UpdatePeriod>").integer(4)
        writer.token("<NumSamplesHistory>").number(2000.0).token("<Alpha>").number(4.0)


def put_tdnn(writer, offsets, weights, bias):
    put_updatable(writer).token("<TimeOffsets>").integers(offsets)
    writer.token("<LinearParams>").matrix(weights).token("<BiasParams>").vector(bias)
    writer.token("<OrthonormalConstraint>").number(0.0).token("<UseNaturalGradient>").boolean(True)
    writer.token("<NumSamplesHistory>").number(2000.0).token("<AlphaInOut>").number(4.0, 4.0)
    writer.token("<RankInOut>").integer(2, 2)


def put_linear(writer, weights):
    put_updatable(writer).token("<Params>").matrix(weights).token("<OrthonormalConstraint>").number(-1.0)
    writer.token("<UseNaturalGradient>").boolean(False).token("<RankInOut>").integer(2, 2)
    writer.token("<Alpha>").number(4.0).token("<NumSamplesHistory>").number(2000.0).token("<UpdatePeriod>").integer(4)


def put_statistics(writer, rows):
    writer.token("<Dim>").integer(rows).token("<ValueAvg>").vector([]).token("<DerivAvg>").vector([])
    writer.token("<Count>").number(0.0, double=True)


def put_batch_norm(writer, mean, variance, rows):
    writer.token("<Dim>").integer(rows).token("<BlockDim>").integer(len(mean)).token("<Epsilon>").number(0.001)
    writer.token("<TargetRms>").number(0.9).token("<TestMode>").boolean(True).token("<Count>").number(9.0)
    writer.token("<StatsMean>").vector(mean).token("<StatsVar>").vector(variance)


def put_dropout(writer, rows):
    writer.token("<Dim>").integer(rows).token("<BlockDim>").integer(rows).token("<TimePeriod>").integer(0)
    writer.token("<DropoutProportion>").number(0.1).token("<TestMode>", "<Continuous>")


def put_scale_and_offset(writer, scales, offsets, rows):
    put_updatable(writer).token("<Dim>").integer(rows).token("<Scales>").vector(scales)
    writer.token("<Offsets>").vector(offsets).token("<UseNaturalGradient>").boolean(True).token("<Rank>").integer(2)


LINES = """input-node name=ivector dim=2
input-node name=input dim=3
component-node name=lda component=lda input=Append(Offset(input, -1), input, Offset(input, 1), IVECTOR)
component-node name=t1.affine component=t1.affine input=lda
component-node name=t1.relu component=t1.relu input=t1.affine
component-node name=t1.batchnorm component=t1.batchnorm input=t1.relu
component-node name=t1.dropout component=t1.dropout input=t1.batchnorm
component-node name=f2.linear component=f2.linear input=t1.dropout
component-node name=f2.affine component=f2.affine input=f2.linear
component-node name=f2.noop component=f2.noop input=Sum(Scale(0.66, t1.dropout), f2.affine)
component-node name=f3.linear component=f3.linear input=f2.noop
component-node name=f3.affine component=f3.affine input=Append(f3.linear, Offset(f3.linear, -3), Round(ivector, 7))
component-node name=f3.scale component=f3.scale input=Sum(f3.affine, Const(0.5, 4))
dim-range-node name=part input-node=f3.scale dim-offset=1 dim=3
component-node name=last component=last input=Append(part, Offset(f2.noop, 2))
component-node name=tanh component=tanh input=last
output-node name=output input=tanh objective=linear
component-node name=xent component=xent input=last
output-node name=output-xent input=xent objective=linear
""".replace("IVECTOR", "ReplaceIndex(ivector, t, 0)").splitlines()


def components_of(seed):
    """The components of LINES: type, how it is put, and its values."""
    rng = np.random.default_rng(seed)

    def normal(*shape):
        return rng.normal(size=shape).astype("f4")

    return {
        "lda": ("FixedAffineComponent", put_affine, "FixedAffineComponent", normal(11, 11), normal(11)),
        "t1.affine": (NATURAL, put_affine, NATURAL, normal(4, 11), normal(4)),
        "t1.relu": ("RectifiedLinearComponent", put_statistics, 4),
        "t1.batchnorm": ("BatchNormComponent", put_batch_norm, normal(2), rng.uniform(0.5, 2, 2), 4),
        "t1.dropout": ("GeneralDropoutComponent", put_dropout, 4),
        "f2.linear": ("TdnnComponent", put_tdnn, [-1, 0], normal(2, 8), []),
        "f2.affine": ("TdnnComponent", put_tdnn, [0, 1], normal(4, 4), normal(4)),
        "f2.noop": ("NoOpComponent", put_dim, 4),
        "f3.linear": ("LinearComponent", put_linear, normal(2, 4)),
        "f3.affine": ("AffineComponent", put_affine, "AffineComponent", normal(4, 6), normal(4)),
        "f3.scale": ("ScaleAndOffsetComponent", put_scale_and_offset, normal(2), normal(2), 4),
        "last": ("AffineComponent", put_affine, "AffineComponent", normal(6, 7), normal(6)),
        "tanh": ("TanhComponent", put_statistics, 6),
        "xent": ("LogSoftmaxComponent", put_statistics, 6),
    }


def put_nnet(writer, lines, components):
    """A network; components: as those of components_of."""
    writer.token("<Nnet3>").line("")
    for line in lines:
        writer.line(line)
    writer.line("").token("<NumComponents>").integer(len(components))
    for name, (kind, put, *values) in components.items():
        writer.token("<ComponentName>", name, f"<{kind}>")
        put(writer, *values)
        writer.token(f"</{kind}>")
    return writer.token("</Nnet3>")


def put_model(writer, seed=0, lines=LINES, priors=(), components=None, context=(6, 4)):
    """A `final.mdl`, by default with the network of most components and descriptors, of 6 pdfs."""
    put_nnet(put_transitions(writer), lines, components or components_of(seed))
    writer.token("<LeftContext>").integer(context[0]).token("<RightContext>").integer(context[1]).token("<Priors>")
    return writer.vector(priors)
