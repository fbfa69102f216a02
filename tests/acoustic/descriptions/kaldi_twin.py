"""A plain evaluation of nnet3 networks in float64, frame by frame and component by component."""

from functools import cache

import numpy as np

MARGIN = 9  # frames beyond the context at which nodes are looked at


def block_rows(values, rows):
    return np.tile(values, rows // len(values))


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def lstm(x, params, dropout):
    cells = params.shape[1]
    in_part, forget_part, cell_part, out_part, old = np.split(x[: 5 * cells], 5)
    scales = x[5 * cells :] if dropout else np.ones(3)
    kept = scales[1] * sigmoid(forget_part + params[1] * old) * old
    cell = kept + scales[0] * sigmoid(in_part + params[0] * old) * np.tanh(cell_part)
    return np.concatenate([cell, scales[2] * sigmoid(out_part + params[2] * cell) * np.tanh(cell)])


def convolved(fields, frames):
    """frames: by their offset, None for one that is missing."""
    model = fields["Model"]
    out = np.tile(fields["BiasParams"], (model.height_out, 1))
    blocks = np.split(fields["LinearParams"], len(model.offsets), axis=1)
    for (time, offset), weights in zip(model.offsets, blocks, strict=True):
        if frames[time] is None:
            continue
        image = frames[time].reshape(model.height_in, model.num_filters_in)
        for height in range(model.height_out):
            place = height * model.step + offset
            if 0 <= place < model.height_in:
                out[height] += weights @ image[place]
    return out.ravel()


def attention(fields, frames):
    """frames: by their offset, None for one that is missing."""
    heads, key_dim, value_dim = fields["NumHeads"], fields["KeyDim"], fields["ValueDim"]
    shown = [np.zeros_like(frames[0]) if frame is None else frame for _, frame in sorted(frames.items())]
    out = []
    for head in range(heads):
        blocks = [np.split(frame, heads)[head] for frame in shown]
        query, places = np.split(np.split(frames[0], heads)[head][key_dim + value_dim :], [key_dim])
        fits = [fields["KeyScale"] * query @ block[:key_dim] for block in blocks] + places
        weights = np.exp(fits) / np.exp(fits).sum()
        out.append(sum(weight * block[key_dim : key_dim + value_dim] for weight, block in zip(weights, blocks)))
        if fields["OutputContext"]:
            out.append(weights)
    return np.concatenate(out)


def component_value(component, frames):
    """The output (rows,) of a component; frames: its input by the offset in time."""
    fields = component.fields
    x = frames.get(0)
    match component.kind:
        case "FixedAffineComponent" | "AffineComponent" | "NaturalGradientAffineComponent":
            return fields["LinearParams"] @ x + fields["BiasParams"]
        case "LinearComponent":
            return fields["Params"] @ x
        case "TdnnComponent":
            total = fields["LinearParams"] @ np.concatenate([frames[offset] for offset in fields["TimeOffsets"]])
            return total + (fields["BiasParams"] if len(fields["BiasParams"]) else 0)
        case "TimeHeightConvolutionComponent":
            return convolved(fields, frames)
        case "RestrictedAttentionComponent":
            return attention(fields, frames)
        case "RectifiedLinearComponent":
            return np.maximum(x, 0)
        case "SigmoidComponent":
            return sigmoid(x)
        case "TanhComponent":
            return np.tanh(x)
        case "LogSoftmaxComponent":
            return x - np.log(np.exp(x).sum())
        case "BatchNormComponent":
            mean, variance = (block_rows(fields[key], len(x)) for key in ("StatsMean", "StatsVar"))
            return fields["TargetRms"] * (x - mean) / np.sqrt(variance + fields["Epsilon"])
        case "NormalizeComponent":
            blocks = x.reshape(-1, fields["BlockDim"])
            return (fields["TargetRms"] * blocks / np.sqrt((blocks**2).mean(axis=1, keepdims=True))).ravel()
        case "ScaleAndOffsetComponent":
            return x * block_rows(fields["Scales"], len(x)) + block_rows(fields["Offsets"], len(x))
        case "PerElementScaleComponent" | "NaturalGradientPerElementScaleComponent":
            return x * fields["Params"]
        case "PerElementOffsetComponent":
            return x + fields["Offsets"]
        case "PermuteComponent":
            return x[fields["ColumnMap"]]
        case "ElementwiseProductComponent":
            return np.prod(x.reshape(-1, fields["OutputDim"]), axis=0)
        case "LstmNonlinearityComponent":
            return lstm(x, fields["Params"], fields.get("UseDropout"))
        case "BackpropTruncationComponent":
            return x * fields.get("Scale", 1.0)
        case "DropoutComponent":
            return x * (1 - fields["DropoutProportion"])
        case "DropoutMaskComponent":
            return np.full(fields["OutputDim"], 1 - fields["DropoutProportion"])
        case "CompositeComponent":
            for inner in fields["NumComponents"]:
                x = component_value(inner, {0: x})
            return x
        case "NoOpComponent" | "GeneralDropoutComponent" | "ClipGradientComponent":
            return x
    raise AssertionError(component.kind)


def evaluate(nnet, features, ivector, context, subsampling=1, output="output"):
    """The output (rows, T / subsampling) for features (dim, T) and one i-vector (dim,).

    The first and the last frame are repeated as far as the context reaches; None is what cannot be computed.
    """
    num_frames = features.shape[1]
    last = (num_frames - 1) // subsampling * subsampling

    def number_of_rows(descriptor):
        match descriptor.kind:
            case "node":
                return nnet.nodes[descriptor.name].rows
            case "Const":
                return descriptor.dim
        return sum(map(number_of_rows, descriptor.operands[: None if descriptor.kind == "Append" else 1]))

    def described(descriptor, frame):
        match descriptor.kind:
            case "node":
                return value(descriptor.name, frame)
            case "Const":
                return np.full(descriptor.dim, descriptor.value)
            case "Offset":
                frame += int(descriptor.value)
            case "Round":
                frame -= frame % int(descriptor.value)
            case "ReplaceIndex":
                frame = int(descriptor.value)
        operands = [described(operand, frame) for operand in descriptor.operands]
        if descriptor.kind == "IfDefined" and operands[0] is None:
            return np.zeros(number_of_rows(descriptor))
        if any(operand is None for operand in operands):
            return None
        match descriptor.kind:
            case "Append":
                return np.concatenate(operands)
            case "Sum":
                return sum(operands)
            case "Scale":
                return descriptor.value * operands[0]
        return operands[0]

    @cache
    def value(name, frame):
        node = nnet.nodes[name]
        if not -context[0] - MARGIN <= frame <= last + context[1] + MARGIN:
            return None  # of a loop
        if name == "input":
            is_known = -context[0] <= frame <= last + context[1]
            return features[:, min(max(frame, 0), num_frames - 1)].astype(float) if is_known else None
        if node.kind == "input-node":
            return ivector.astype(float)
        component = nnet.components.get(node.component)
        if component is not None and node.input is None:
            return component_value(component, {})
        if component is None:
            own = described(node.input, frame)
            rows = slice(node.first_row, node.first_row + node.rows)
            return own if own is None or node.kind == "output-node" else own[rows]
        frames = {offset: described(node.input, frame + offset) for offset in component.offsets}
        required = component.required_offsets
        is_known = all(frames[offset] is not None for offset in required)
        return component_value(component, frames) if is_known else None

    return np.stack([value(output, frame) for frame in range(0, num_frames, subsampling)], axis=1)
