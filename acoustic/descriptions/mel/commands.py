"""The editing commands of the CNTK book, section 4.2.2, and further ones of CNTK.

Each is a function of the editor, which holds the models, and of the parsed command.
"""

from acoustic.descriptions.mel.command_table import command
from acoustic.descriptions.mel.names import EditedModel
from acoustic.descriptions.mel.script import Editor, file_path
from acoustic.descriptions.mel.statements import Command
from acoustic.network import editing
from acoustic.network.network import Network
from acoustic.network.text_dump import dump_lines
from readers.config.values import did_you_mean, parse_bool, parse_float, parse_int
from readers.errors import ConfigError, ModelError

FORMAT: dict[str, tuple[str, ...]] = {"format": ("cntk",)}
COPY: dict[str, tuple[str, ...]] = {"copy": ("all", "value"), "copyFlag": ("all", "value")}
DATA: dict[str, tuple[str, ...]] = {"includeData": ("true", "false", "t", "f", "1", "0")}

# Property in lower case: the option of a learnable parameter or the list of nodes that it sets.
LEARNING = {
    "computegradient": "needGradient",
    "needsgradient": "needGradient",
    "needgradient": "needGradient",
    "learningratemultiplier": "learningRateMultiplier",
}
ROLES = {
    "feature": "features",
    "label": "labels",
    "criterion": "criteria",
    "criteria": "criteria",
    "finalcriterion": "criteria",
    "evaluation": "evaluations",
    "eval": "evaluations",
    "output": "outputs",
}
# Without effect: gaps between the sequences of a minibatch are always left out of criteria.
NO_EFFECT = ("multiseq",)
PROPERTIES = (
    *("computeGradient", "needsGradient", "needGradient", "learningRateMultiplier", "feature", "label", "criterion"),
    *("finalCriterion", "criteria", "evaluation", "eval", "output", "multiSeq"),
)


@command("m = CreateModel()")
def create_model(editor: Editor, call: Command) -> None:
    """Create an empty model."""
    editor.create(call.target)


@command("CreateModelWithName(m)")
def create_model_with_name(editor: Editor, call: Command) -> None:
    """Create an empty model."""
    editor.create(call.arguments[0])


@command("m = LoadModel(file)", options=FORMAT)
def load_model(editor: Editor, call: Command) -> None:
    """Read a model from a file."""
    editor.load(call.target, call.arguments[0])


@command("LoadModelWithName(m, file)", options=FORMAT)
def load_model_with_name(editor: Editor, call: Command) -> None:
    """Read a model from a file."""
    editor.load(*call.arguments)


@command("SetDefaultModel(m)")
def set_default_model(editor: Editor, call: Command) -> None:
    """Set the default model, to which names without a model refer and descriptions are added."""
    editor.models.set_default(call.arguments[0])


@command("SaveDefaultModel(file)", options=FORMAT)
def save_default_model(editor: Editor, call: Command) -> None:
    """Validate the default model and write it to a file."""
    editor.save(editor.models.default, call.arguments[0])


@command("SaveModel(m, file)", "SaveModel(file)", options=FORMAT)
def save_model(editor: Editor, call: Command) -> None:
    """Validate a model, by default the default one, and write it to a file."""
    *name, path = call.arguments
    if not name and path in editor.models:
        raise ConfigError(f"{path} is a model; expected SaveModel({path}, file)")
    editor.save(editor.models[name[0]] if name else editor.models.default, path)


@command("UnloadModel(m, ...)")
def unload_model(editor: Editor, call: Command) -> None:
    """Remove models from the script; an unknown model causes a warning only."""
    for name in call.arguments:
        if name in editor.models:
            editor.models.remove(name)
        else:
            editor.log(f"warning: {call.where}: UnloadModel: no model {name}")


@command("LoadNDLSnippet(m, file)", options={"section": ()})
def load_ndl_snippet(editor: Editor, call: Command) -> None:
    """Add the description in a file, or in a section of it, to a model, which is created if necessary."""
    model, file = call.arguments
    editor.describe_from_file(model, file, call.options.get("section"), call.where)


@command("Dump(m, file)", aliases=("DumpModel",), options=DATA)
def dump(editor: Editor, call: Command) -> None:
    """Write the nodes of a model to a text file, with their matrices if includeData=true."""
    model = editor.models[call.arguments[0]]
    network = editing.clone(model.network)
    editor.write_text(call.arguments[1], dump_lines(network, network.nodes, _data(call)))


@command("DumpNode(node, file)", options=DATA)
def dump_node(editor: Editor, call: Command) -> None:
    """Write some nodes to a text file, with their matrices if includeData=true."""
    model, names = editor.models.nodes(call.arguments[0])
    editor.write_text(call.arguments[1], dump_lines(editing.clone(model.network), names, _data(call)))


@command("Copy(fromNode, toNode)", aliases=("CopyNode",), options=COPY)
def copy(editor: Editor, call: Command) -> None:
    """Copy nodes within a model or between two models; copy=value copies their values only."""
    source, target, names = editor.models.pairs(*call.arguments)
    editing.copy_nodes(source.network, target.network, names, _values_only(call))


@command("CopySubTree(fromRoot, toRoot)", "CopySubTree(fromRoot, toModel, prefix)", options=COPY)
def copy_sub_tree(editor: Editor, call: Command) -> None:
    """Copy nodes with everything below them.

    With a prefix, it is put before each name. Without, the change from one root's name to the other's is applied to the
    names of all nodes below: CopySubTree(L3.RL, L4.RL) copies L3.BFF.W to L4.BFF.W. Within one model, nodes whose names
    do not change (those below L3) are shared by the copies and the originals.
    """
    if len(call.arguments) == 3:
        model, roots = editor.models.nodes(call.arguments[0])
        target = editor.models[call.arguments[1]]
        for root in roots:
            pairs = [(name, f"{call.arguments[2]}{name}") for name in editing.subtree(model.network, root)]
            editing.copy_nodes(model.network, target.network, pairs, _values_only(call))
        return
    source, target, renamed = editor.models.pairs(*call.arguments)
    for root, new in renamed:
        pairs = [(name, _moved(name, root, new)) for name in editing.subtree(source.network, root)]
        within = source is target
        shared = [old for old, name in pairs if within and old == name]
        pairs = [(old, name) for old, name in pairs if not (within and old == name)]
        if not pairs:
            raise ModelError(f"{root}: would be copied onto itself; expected another name")
        editing.copy_nodes(source.network, target.network, pairs, _values_only(call), shared)


def _moved(name: str, root: str, new: str) -> str:
    """Return the name with the change from `root` to `new` applied to its beginning, if it begins like `root`."""
    old_parts = root.split(".")
    new_parts = new.split(".")
    while len(old_parts) > 1 and len(new_parts) > 1 and old_parts[-1] == new_parts[-1]:
        old_parts = old_parts[:-1]
        new_parts = new_parts[:-1]
    parts = name.split(".")
    return ".".join(new_parts + parts[len(old_parts) :]) if parts[: len(old_parts)] == old_parts else name


def _pairs_of_one_model(editor: Editor, call: Command) -> tuple[EditedModel, list[tuple[str, str]]]:
    """Return the model of both node patterns and the pairs (old, new) of names that they match."""
    source, target, names = editor.models.pairs(*call.arguments)
    if source is not target:
        raise ModelError(f"{call.arguments[0]} and {call.arguments[1]} belong to two models; expected one model")
    return source, names


@command("CopyNodeInputs(fromNode, toNode)", aliases=("CopyInputs",))
def copy_node_inputs(editor: Editor, call: Command) -> None:
    """Set the inputs of nodes to those of other nodes of the model."""
    model, names = _pairs_of_one_model(editor, call)
    for old, new in names:
        operands = [operand.name for operand in editing.connected_operands(model.network[old])]
        if len(operands) < len(model.network[old].operands):
            model.network[old].check_connected()
        editing.set_inputs(model.network, new, operands, call.where)


@command("SetInput(node, inputNumber, inputNode)", aliases=("SetNodeInput",))
def set_input(editor: Editor, call: Command) -> None:
    """Set one input, counted from 0, of every node that the first argument matches."""
    model, names = editor.models.nodes(call.arguments[0])
    index = parse_int(call.arguments[1], "argument 2", "inputNumber")
    operand = _input_of(editor, model, call.arguments[2])
    for name in names:
        editing.set_input(model.network, name, index, operand, call.where)


@command("SetInputs(node, inputNode, ...)", aliases=("SetNodeInputs",))
def set_inputs(editor: Editor, call: Command) -> None:
    """Set all inputs of a node."""
    model, name = editor.models.node(call.arguments[0])
    operands = [_input_of(editor, model, text) for text in call.arguments[1:]]
    editing.set_inputs(model.network, name, operands, call.where)


def _input_of(editor: Editor, model: EditedModel, text: str) -> str:
    owner, name = editor.models.node(text)
    if owner is not model:
        raise ModelError(f"{text} belongs to model {owner.name}; expected a node of model {model.name}")
    return name


@command("SetProperty(node, property, value)")
def set_property(editor: Editor, call: Command) -> None:
    """Set a property of nodes: the learning options of parameters, or the special role of nodes."""
    model, names = editor.models.nodes(call.arguments[0])
    prop = call.arguments[1].lower()
    if prop in NO_EFFECT:
        return
    if prop in ROLES:
        member = parse_bool(call.arguments[2], "argument 3", call.arguments[1])
        for name in names:
            editing.set_role(model.network, name, ROLES[prop], member)
    elif prop in LEARNING:
        _set_learning(model.network, names, call)
    else:
        _refuse_property(call)


@command("SetPropertyForSubTree(root, property, value)")
def set_property_for_sub_tree(editor: Editor, call: Command) -> None:
    """Set the learning options of the parameters among nodes and everything below them."""
    if call.arguments[1].lower() not in LEARNING:
        _refuse_property(call, PROPERTIES[:4])
    model, roots = editor.models.nodes(call.arguments[0])
    names = [name for root in roots for name in editing.subtree(model.network, root)]
    _set_learning(model.network, list(dict.fromkeys(names)), call)


def _set_learning(network: Network, names: list[str], call: Command) -> None:
    """Set a learning option of the parameters among some nodes; there must be at least one."""
    option = LEARNING[call.arguments[1].lower()]
    text = call.arguments[2]
    parse = parse_bool if option == "needGradient" else parse_float
    value = parse(text, "argument 3", call.arguments[1])
    learnable = [name for name in names if editing.is_learnable(network[name])]
    if not learnable:
        raise ModelError(f"{call.arguments[0]}: no learnable parameter among {len(names)} nodes; expected one or more")
    for name in learnable:
        editing.set_learning(network, name, option, value)


def _refuse_property(call: Command, known: tuple[str, ...] = PROPERTIES) -> None:
    name = call.arguments[1]
    if name.lower() == "recurrent":
        raise ConfigError(
            "property recurrent cannot be set, because loops are found automatically; expected no such line"
        )
    raise ConfigError(f"property {name!r}; expected one of {', '.join(known)}{did_you_mean(name, known)}")


@command("RemoveNode(node, ...)", aliases=("Remove", "Delete", "DeleteNode"))
def remove_node(editor: Editor, call: Command) -> None:
    """Remove nodes; their users must get other inputs before the model is saved."""
    matches = [editor.models.nodes(text) for text in call.arguments]
    for model in dict.fromkeys(model.name for model, _ in matches):
        names = [name for owner, names in matches if owner.name == model for name in names]
        editing.remove(editor.models[model].network, names)


@command("Rename(oldName, newName)")
def rename(editor: Editor, call: Command) -> None:
    """Rename nodes; connections do not change."""
    model, names = _pairs_of_one_model(editor, call)
    if len(dict(names)) < len(names):
        raise ModelError(f"{call.arguments[0]} to {call.arguments[1]}: expected one new name")
    editing.rename(model.network, dict(names))


@command("ReviseParameter(node, file)")
def revise_parameter(editor: Editor, call: Command) -> None:
    """Set the value of a parameter from a text file, one row of the matrix a line."""
    model, name = editor.models.node(call.arguments[0])
    editing.read_value(model.network, name, file_path(call.arguments[1]))


def _values_only(call: Command) -> bool:
    return call.options.get("copy", call.options.get("copyFlag", "all")).lower() == "value"


def _data(call: Command) -> bool:
    return parse_bool(call.options.get("includeData", "false"), "option", "includeData")
