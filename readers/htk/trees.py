"""HTK decision trees, in the file format of HHEd's commands ST and LT.

A question is a set of patterns for triphone names, such as `*-m+*`.  A tree belongs to one emitting state of one phone
and maps the name of a triphone to the name of a tied state:

    QS 'L_Nasal' { "*-m+*" , "n-*" }
    aa[2]
    {
       0   'L_Nasal'   -1   "aa_s2_1"
      -1   'R_Stop'    "aa_s2_2"   "aa_s2_3"
    }
    zh[3]
       "zh_s3_1"

A node line has its number, its question, the "no" successor and the "yes" successor.
Source: HTK Book 3.4, section 10.5 and reference section of HHEd.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from readers.common.files import atomic_write
from readers.common.names import wildcard
from readers.common.text import escape, is_closed, read_lines, unescape
from readers.errors import FormatError, GraphError

# A quote that is not closed takes the rest of the line; looking for its end again and again would take quadratic time.
_TOKEN = re.compile(r""""(?:[^"\\]|\\.)*(?:"|.*)|'(?:[^'\\]|\\.)*(?:'|.*)|[{}(),]|[^\s{}(),"']+""")
_HEADER = re.compile(r"(.+)\[([0-9]{1,3})\](?:\.stream\[([0-9]{1,3})\])?")


def split_triphone(name: str) -> tuple[str | None, str, str | None]:
    """Return (left, phone, right) of `left-phone+right`; missing contexts are None.

    >>> split_triphone("sil-aa+m"), split_triphone("aa+m"), split_triphone("sil")
    (('sil', 'aa', 'm'), (None, 'aa', 'm'), (None, 'sil', None))
    """
    left: str | None
    right: str | None
    left, dash, phone = name.partition("-")
    if not dash or not left or not phone:
        left = None
        phone = name
    stem, plus, right = phone.partition("+")
    if not plus or not stem or not right:
        return left, phone, None
    return left, stem, right


def phone_of(model: str) -> str:
    """Return the phone of a full triphone name; other names are returned unchanged, as phones may contain a dash
    (ax-h).

    >>> phone_of("sil-aa+m"), phone_of("ax-h"), phone_of("aa+m")
    ('aa', 'ax-h', 'aa+m')
    """
    left, phone, right = split_triphone(model)
    return model if left is None or right is None else phone


@dataclass(frozen=True)
class Question:
    """A question: whether the name of a model matches any of the patterns.

    Attributes
    ----------
    name : str
    patterns : tuple of str
        ``*`` matches any text, ``?`` any character.
    """

    name: str
    patterns: tuple[str, ...]

    @cached_property
    def _regex(self) -> re.Pattern[str]:
        return re.compile("|".join(map(wildcard, self.patterns)), re.DOTALL)

    def __call__(self, model: str) -> bool:
        return self._regex.fullmatch(model) is not None


@dataclass(frozen=True)
class DecisionTree:
    """The decision tree of one state of a phone.

    Attributes
    ----------
    nodes : tuple of (str, int or str, int or str)
        (question, no, yes), the root first; no and yes are indices of nodes or names of leaves.
    leaf : str or None
        Name of the only leaf of a tree without nodes.
    """

    nodes: tuple[tuple[str, int | str, int | str], ...]
    leaf: str | None = None

    @property
    def leaves(self) -> list[str]:
        """Names of all leaves."""
        if self.leaf is not None:
            return [self.leaf]
        return [child for _, *children in self.nodes for child in children if isinstance(child, str)]


@dataclass(frozen=True)
class DecisionTrees:
    """Questions and decision trees.

    Attributes
    ----------
    questions : dict of str to Question
        By name.
    trees : dict of (str, int) to DecisionTree
        By phone and HTK's number of the emitting state, counted from 2.
    """

    questions: dict[str, Question]
    trees: dict[tuple[str, int], DecisionTree]

    def tied_state(self, model: str, state: int) -> str:
        """Return the tied state of an emitting state of a model.  Raises GraphError if there is no tree for it."""
        phone = split_triphone(model)[1]
        tree = self.trees.get((phone, state))
        if tree is None:
            raise GraphError(f"decision trees: none for {phone}[{state}], which model '{model}' needs; expected one")
        child: int | str = 0 if tree.leaf is None else tree.leaf
        while isinstance(child, int):
            question, no, yes = tree.nodes[child]
            child = yes if self.questions[question](model) else no
        return child

    @cached_property
    def num_states(self) -> dict[str, int]:
        """Map each phone to its number of emitting states.  Raises GraphError if a state between others has no tree."""
        states: dict[str, list[int]] = {}
        for phone, state in self.trees:
            states.setdefault(phone, []).append(state)
        for phone, numbers in states.items():
            if sorted(numbers) != list(range(2, 2 + len(numbers))):
                raise GraphError(
                    f"decision trees: those of '{phone}' are of states {sorted(numbers)}; expected 2, 3, ..."
                )
        return {phone: len(numbers) for phone, numbers in states.items()}

    def synthesise(self, model: str) -> tuple[str, ...]:
        """Return the tied states of a model, left to right, whether or not it occurred in training (AU of HHEd)."""
        phone = split_triphone(model)[1]
        count = self.num_states.get(phone)
        if count is None:
            raise GraphError(f"decision trees: none for '{phone}', which model '{model}' needs; expected its trees")
        return tuple(self.tied_state(model, state) for state in range(2, 2 + count))


class Tokens:
    """Tokens of a file with their line numbers; quoted names are distinguished from unquoted ones."""

    def __init__(self, path: str | Path):
        self.path = path
        self.at = 0
        self.tokens = []
        self.lines = []
        for number, line in enumerate(read_lines(path), 1):
            if line.lstrip().startswith("#"):
                continue
            tokens = _TOKEN.findall(line)
            self.tokens += tokens
            self.lines += [number] * len(tokens)
        self.last_line = self.lines[-1] if self.lines else 1

    @property
    def next(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    @property
    def line(self) -> int:
        return self.lines[self.at] if self.at < len(self.lines) else self.last_line

    @property
    def where(self) -> str:
        return f"{self.path}:{self.line}"

    def fault(self, expected: str, token: str | None = None, line: int | None = None) -> FormatError:
        token = token or (repr(self.next[:40]) if self.next else "the end of the file")
        return FormatError(f"{self.path}:{line or self.line}: {token}; expected {expected}")

    def require(self, token: str) -> None:
        if self.next != token:
            raise self.fault(token)
        self.at += 1

    def name(self, what: str) -> str:
        token = self.next
        if not token or token in "{}()," or (token[0] in "\"'" and (len(token) < 3 or not is_closed(token))):
            raise self.fault(what)
        self.at += 1
        return unescape(token[1:-1]) if token[0] in "\"'" else token

    def question(self) -> Question:
        """Parse the arguments of QS: name { pattern , pattern }; commas are optional."""
        name = self.name("the name of a question")
        self.require("{")
        patterns = []
        while self.next != "}":
            patterns.append(self.name("a pattern or }"))
            if self.next == ",":
                self.at += 1
        self.at += 1
        if not patterns:
            raise self.fault("at least one pattern", f"question {name!r} without patterns")
        return Question(name, tuple(patterns))

    def add_question(self, questions: dict[str, Question]) -> None:
        line = self.line
        self.at += 1
        question = self.question()
        if question.name in questions:
            raise self.fault("each once", f"question {question.name!r} is defined twice", line)
        questions[question.name] = question


def read_trees(path: str | Path) -> DecisionTrees:
    """Read questions and trees as HHEd's command ST writes them.

    Parameters
    ----------
    path : path
        The file.

    Returns
    -------
    DecisionTrees

    Raises
    ------
    FormatError
        With file and line, for a violation of the format, an undefined question, a node that is missing, unreachable or
        reached twice, and a second tree for a state.

    References
    ----------
    HTK Book 3.4, section 10.5 and reference section of HHEd.
    """
    tokens = Tokens(path)
    questions: dict[str, Question] = {}
    trees: dict[tuple[str, int], DecisionTree] = {}
    while tokens.next == "QS":
        tokens.add_question(questions)
    while tokens.next:
        line = tokens.line
        phone, state = _tree_header(tokens)
        if (phone, state) in trees:
            raise tokens.fault("one tree for each state", f"a second tree for {phone}[{state}]", line)
        if tokens.next == "{":
            trees[phone, state] = _tree(tokens, questions, f"{phone}[{state}]", line)
        elif tokens.next[:1] in ("'", '"'):
            trees[phone, state] = DecisionTree((), tokens.name("the name of a leaf"))
        else:
            raise tokens.fault("{ or the name of a leaf in quotes")
    if not trees:
        raise FormatError(f"{path}: no trees; expected QS lines and trees as HHEd's ST writes them")
    return DecisionTrees(questions, trees)


def _tree_header(tokens: Tokens) -> tuple[str, int]:
    match = _HEADER.fullmatch(tokens.next)
    if match is None or int(match[2]) < 2 or int(match[3] or 1) != 1:
        raise tokens.fault("a tree's phone[state], the states counted from 2, or QS before the first tree")
    tokens.at += 1
    return match[1], int(match[2])


def _tree(tokens: Tokens, questions: Mapping[str, Question], title: str, first_line: int) -> DecisionTree:
    """Parse the nodes between { and }."""
    tokens.require("{")
    rows: dict[int, tuple[str, str, str, int]] = {}
    while tokens.next != "}":
        line = tokens.line
        number = _node_number(tokens.next)
        if number is None:
            raise tokens.fault("a node's number (0, -1, -2, ...) or }")
        tokens.at += 1
        question = tokens.name("a question")
        if question not in questions:
            raise tokens.fault("a question that a QS line defines", f"question {question!r} in {title}", line)
        children = []
        for _ in range(2):
            child = tokens.next
            if not child or (child[0] not in "\"'" and _node_number(child) is None):
                raise tokens.fault("a node's number or the name of a leaf in quotes")
            tokens.at += 1
            children.append(child)
        if number in rows:
            raise tokens.fault("each once", f"node {number} of {title} is defined twice", line)
        rows[number] = (question, children[0], children[1], line)
    tokens.at += 1
    order = {number: index for index, number in enumerate(rows)}
    if next(iter(order), None) != 0:
        raise tokens.fault("node 0 first", f"tree {title} without a root", first_line)
    nodes: list[tuple[str, int | str, int | str]] = []
    reached = {0}
    for question, no, yes, line in rows.values():
        answers: list[int | str] = []
        for child in (no, yes):
            number = _node_number(child)
            if number is None:
                if len(child) < 3:
                    raise tokens.fault("a name", f"an empty leaf in {title}", line)
                answers.append(unescape(child[1:-1]))
                continue
            if number not in order or number in reached:
                state = "is reached twice" if number in reached else "is not there"
                raise tokens.fault("a tree", f"node {number} of {title} {state}", line)
            reached.add(number)
            answers.append(order[number])
        nodes.append((question, answers[0], answers[1]))
    # Every node except the root has one parent; nodes of a cycle cannot be reached from the root.
    num_reached = 0
    waiting = [0]
    while waiting:
        num_reached += 1
        waiting += [child for child in nodes[waiting.pop()][1:] if isinstance(child, int)]
    if num_reached != len(nodes):
        raise tokens.fault(
            "all of them", f"{len(nodes) - num_reached} nodes of {title} that no answers reach", first_line
        )
    return DecisionTree(tuple(nodes))


def _node_number(token: str) -> int | None:
    digits = token.removeprefix("-")
    return int(token) if digits.isascii() and digits.isdigit() and len(digits) <= 9 and int(token) <= 0 else None


def write_trees(path: str | Path, trees: DecisionTrees) -> None:
    """Write questions and trees in the format of HHEd's command ST.

    Parameters
    ----------
    path : path
        File to write.
    trees : DecisionTrees

    Raises
    ------
    FormatError
        For an empty name.
    """
    with atomic_write(path, "w") as file:
        file.writelines(f"{question_line(question)}\n" for question in trees.questions.values())
        for (phone, state), tree in trees.trees.items():
            file.write(f"\n{phone}[{state}]\n")
            if tree.leaf is not None:
                file.write(f"   {quoted(tree.leaf, path)}\n")
                continue
            rows = [
                f"{-number:4d} {quoted(question, path, chr(39)):>24} "
                + " ".join(f"{-child if isinstance(child, int) else quoted(child, path):>12}" for child in (no, yes))
                for number, (question, no, yes) in enumerate(tree.nodes)
            ]
            file.write("{\n" + "\n".join(rows) + "\n}\n")


def question_line(question: Question) -> str:
    patterns = ",".join(f'"{escape(pattern)}"' for pattern in question.patterns)
    return f"QS '{escape(question.name, chr(39))}' {{ {patterns} }}"


def quoted(name: str, path: str | Path, mark: str = '"') -> str:
    if not name:
        raise FormatError(f"{path}: an empty name; expected every leaf and question to have one")
    return f"{mark}{escape(name, mark)}{mark}"
