"""The models of a script by name, and the nodes that a name or pattern means::

    L3.RL        a node of the default model            m1.L3.RL    a node of model m1
    L3.*         every node whose name begins so        m1.L3.*.T   and ends so
    *            every node of the default model        m1, m1.*    every node of m1

Names are found in any case, and an exact match takes precedence; the texts before and after a `*` are case-sensitive. A
name that the script defined, ``L4 = SBFF(...)``, means the node that is its value. Source: CNTK book, section 4.2.1.7.
"""

import re
from dataclasses import dataclass, field

from acoustic.descriptions.ndl.evaluate import Scope
from acoustic.network.network import Network
from acoustic.nodes.base import Node
from acoustic.nodes.option import name_hint
from readers.errors import ConfigError, ModelError

NODE_NAME = re.compile(r"""[^\s,;=#"$()\[\]{}.][^\s,;="$()\[\]{}]*""")


@dataclass
class EditedModel:
    """A network that a script edits, and the names that its descriptions gave to nodes.

    Attributes
    ----------
    name : str
        The model's name in the script.
    network : Network
    scope : Scope
    """

    name: str
    network: Network
    scope: Scope
    _seen: dict[str, Node] | None = field(default=None, repr=False)
    _num_seen: int = field(default=0, repr=False)
    _folded: dict[str, list[str]] = field(default_factory=dict, repr=False)

    def find(self, name: str) -> str | None:
        """Return the network's spelling of a node's name, or the node that a description's name means.

        None if there is none, or several differ only in case.
        """
        if name not in self.network.nodes and name.lower() not in self._by_lower_case():
            node = self.scope.find(name)
            return node.name if node else None
        return self.spelled(name)

    def spelled(self, name: str) -> str | None:
        """Return the network's spelling of a node's name, None if there is none or several differ only in case."""
        if name in self.network.nodes:
            return name
        near = self._by_lower_case().get(name.lower(), [])
        return near[0] if len(near) == 1 else None

    def _by_lower_case(self) -> dict[str, list[str]]:
        """Return the names of the nodes by lower-case name.

        The index is kept while the network has the same dict of nodes and as many nodes: removing nodes creates a new
        dict.
        """
        nodes = self.network.nodes
        if self._seen is not nodes or self._num_seen != len(nodes):
            self._seen = nodes
            self._num_seen = len(nodes)
            self._folded = {}
            for name in nodes:
                self._folded.setdefault(name.lower(), []).append(name)
        return self._folded


@dataclass(frozen=True)
class Pattern:
    """A selection of a model's nodes: one name, in `head`, or with `star` all names with this head and tail."""

    model: EditedModel
    head: str
    tail: str = ""
    star: bool = False

    def __str__(self) -> str:
        return f"{self.head}*{self.tail}" if self.star else self.head

    def matches(self) -> list[str]:
        """Return the names of the nodes, in the network's order. Raises ModelError if there is none."""
        if not self.star:
            spelling = self.model.find(self.head)
            names = [] if spelling is None else [spelling]
        else:
            names = [name for name in self.model.network.nodes if self._fits(name)]
        if not names:
            nodes = self.model.network.nodes
            hint = name_hint(str(self).replace("*", ""), nodes) if nodes else "the model is empty"
            raise ModelError(f"{self}: no such node in model {self.model.name}; {hint}")
        return names

    def _fits(self, name: str) -> bool:
        long_enough = len(name) >= len(self.head) + len(self.tail)
        return long_enough and name.startswith(self.head) and name.endswith(self.tail)

    def kept(self, name: str) -> str:
        """Return the text that the `*` matches in a name."""
        return name[len(self.head) : len(name) - len(self.tail)]

    def filled(self, kept: str) -> str:
        """Return the name with `kept` in place of the `*`; an existing node keeps its spelling."""
        if not self.star:
            return self.model.find(self.head) or new_node_name(self.head)
        name = f"{self.head}{kept}{self.tail}"
        return self.model.spelled(name) or new_node_name(name)


class Models:
    """The models of a script. The default model is the first one created, until SetDefaultModel names another."""

    def __init__(self) -> None:
        self._models: dict[str, EditedModel] = {}
        self._default: EditedModel | None = None

    def __contains__(self, name: str) -> bool:
        return name.lower() in self._models

    def add(self, model: EditedModel) -> EditedModel:
        """Add a model; it replaces one of the same name."""
        if not re.fullmatch(r"[^\W\d]\w*", model.name):
            raise ConfigError(f"model {model.name!r}; expected a name of letters, digits and underscores")
        if self._default is None or self._default.name.lower() == model.name.lower():
            self._default = model
        self._models[model.name.lower()] = model
        return model

    def remove(self, name: str) -> None:
        if self._models.pop(name.lower()) is self._default:
            self._default = None

    def __getitem__(self, name: str) -> EditedModel:
        """Return a model by name. Raises ModelError with the nearest names."""
        if name not in self:
            hint = name_hint(name, [model.name for model in self._models.values()])
            raise ModelError(f"model {name!r}: neither loaded nor created; {hint}")
        return self._models[name.lower()]

    @property
    def default(self) -> EditedModel:
        """The model that names without a model refer to. Raises ModelError if there is none."""
        if self._default is None:
            raise ModelError("there is no model; expected m=LoadModel(file), m=CreateModel() or SetDefaultModel(m)")
        return self._default

    def set_default(self, name: str) -> None:
        self._default = self[name]

    def pattern(self, text: str) -> Pattern:
        """Return the pattern of a name or pattern text. Raises ModelError if it is not valid."""
        if text in self:
            return Pattern(self[text], "", "", True)
        model = None
        node_text = text
        match = re.match(r"(\w+)([.*])", text)
        # A node of the default model takes precedence over a model: W0*features is also a node's name.
        if match and match.group(1) in self and (self._default is None or text not in self._default.network.nodes):
            model = self[match.group(1)]
            node_text = text[match.end() :] if match.group(2) == "." else text[match.end() - 1 :]
        model = model or self.default
        if not node_text:
            raise ModelError(f"{text!r}: no name; expected a node, a pattern or a model")
        if node_text in model.network.nodes or "*" not in node_text:
            return Pattern(model, node_text)
        head, _, tail = node_text.partition("*")
        if "*" in tail:
            raise ModelError(f"{text!r}: more than one *; expected one, or a node's whole name")
        return Pattern(model, head, tail, True)

    def nodes(self, text: str) -> tuple[EditedModel, list[str]]:
        """Return the model and the names of its nodes that a name or pattern matches, at least one."""
        pattern = self.pattern(text)
        return pattern.model, pattern.matches()

    def node(self, text: str) -> tuple[EditedModel, str]:
        """Return the model and the name of the single node that matches. Raises ModelError for another number."""
        model, names = self.nodes(text)
        if len(names) > 1:
            raise ModelError(f"{text}: {len(names)} nodes ({', '.join(names[:3])}, ...); expected one")
        return model, names[0]

    def pairs(self, source: str, target: str) -> tuple[EditedModel, EditedModel, list[tuple[str, str]]]:
        """Return the models and the pairs of node names for a copy or a new name; the text of the `*` is kept.

        One node may be copied to all nodes that a pattern matches. Raises ModelError if the patterns do not correspond.
        """
        old = self.pattern(source)
        new = self.pattern(target)
        names = old.matches()
        if old.star and not new.star:
            raise ModelError(f"{source} to {target}: expected a * in both")
        if new.star and not old.star:
            original = old.model.network[names[0]]
            return (
                old.model,
                new.model,
                [(original.name, name) for name in new.matches() if new.model.network[name] is not original],
            )
        return old.model, new.model, [(name, new.filled(old.kept(name))) for name in names]


def new_node_name(name: str) -> str:
    """Return the name if it is valid for a node. Raises ModelError."""
    if not NODE_NAME.fullmatch(name):
        raise ModelError(f"node {name!r}: invalid name; expected letters, digits, dots and underscores")
    return name
