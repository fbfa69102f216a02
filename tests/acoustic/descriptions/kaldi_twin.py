"""A plain evaluation of nnet3 networks in float64, frame by frame of the full rate and component by component."""

import numpy as np


def block_rows(values, rows):
    return np.tile(values, rows // len(values))


def component_value(component, x, offset_of):
    """The output (T, rows) of a component; offset_of(x, o) is x at the frames o later."""
    fields = component.fields
    match component.kind:
        case "FixedAffineComponent" | "AffineComponent" | "NaturalGradientAffineComponent":
            return x @ fields["LinearParams"].T + fields["BiasParams"]
        case "LinearComponent":
            return x @ fields["Params"].T
        case "TdnnComponent":
            blocks = np.split(fields["LinearParams"], len(fields["TimeOffsets"]), axis=1)
            total = sum(offset_of(x, o) @ block.T for o, block in zip(fields["TimeOffsets"], blocks, strict=True))
            return total + (fields["BiasParams"] if len(fields["BiasParams"]) else 0)
        case "RectifiedLinearComponent":
            return np.maximum(x, 0)
        case "TanhComponent":
            return np.tanh(x)
        case "LogSoftmaxComponent":
            return x - np.log(np.exp(x).sum(axis=1, keepdims=True))
        case "BatchNormComponent":
            mean, variance = (block_rows(fields[key], x.shape[1]) for key in ("StatsMean", "StatsVar"))
            return fields["TargetRms"] * (x - mean) / np.sqrt(variance + fields["Epsilon"])
        case "ScaleAndOffsetComponent":
            return x * block_rows(fields["Scales"], x.shape[1]) + block_rows(fields["Offsets"], x.shape[1])
        case "NoOpComponent" | "GeneralDropoutComponent":
            return x
    raise AssertionError(component.kind)


def evaluate(nnet, features, ivector, context, subsampling=1, output="output"):
    """The output (rows, T / subsampling) for features (dim, T), repeated beyond the ends, and one i-vector (dim,)."""
    pad = sum(context) + 10
    frames = np.pad(features.T.astype(float), ((pad, pad), (0, 0)), mode="edge")
    count = len(frames)

    def offset_of(x, offset):
        return x[np.clip(np.arange(count) + offset, 0, count - 1)]

    def described(descriptor):
        operands = [described(operand) for operand in descriptor.operands]
        match descriptor.kind:
            case "node":
                return values[descriptor.name]
            case "Append":
                return np.concatenate(operands, axis=1)
            case "Sum":
                return sum(operands)
            case "Scale":
                return descriptor.value * operands[0]
            case "Offset":
                return offset_of(operands[0], int(descriptor.value))
            case "Const":
                return np.full((count, descriptor.dim), descriptor.value)
            case "Round" | "ReplaceIndex":
                assert np.ptp(operands[0], axis=0).max() == 0  # an i-vector
                return operands[0]
        raise AssertionError(descriptor.kind)

    values = {}
    for name, node in nnet.nodes.items():
        match node.kind:
            case "input-node":
                values[name] = frames if name == "input" else np.tile(ivector.astype(float), (count, 1))
            case "component-node":
                values[name] = component_value(nnet.components[node.component], described(node.input), offset_of)
            case "dim-range-node":
                values[name] = described(node.input)[:, node.first_row : node.first_row + node.rows]
            case "output-node":
                values[name] = described(node.input)
        if name == output:
            return values[name][pad : count - pad : subsampling].T
    raise AssertionError(output)
