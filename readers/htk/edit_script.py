"""HHEd edit scripts: questions (QS), tree clustering (TB) and other commands.

Source: HTK Book 3.4, section 10.5 and reference section of HHEd.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from readers.common.files import atomic_write
from readers.common.text import is_number
from readers.htk.trees import Question, Tokens, question_line, quoted, split_triphone

_TB_STATE = re.compile(r"\.state\[([0-9]{1,3})\]")


@dataclass(frozen=True)
class Clustering:
    """A TB command: cluster one state of all models of a phone with the questions of the script.

    Attributes
    ----------
    threshold : float
        Minimum increase in ln likelihood of a split.
    prefix : str
        Prefix of the names of the tied states.
    phone : str
    state : int
        HTK counts emitting states from 2.
    """

    threshold: float
    prefix: str
    phone: str
    state: int


@dataclass(frozen=True)
class EditScript:
    """An HHEd script.

    Attributes
    ----------
    questions : dict of str to Question
        The QS commands, by name.
    clusterings : list of Clustering
        The TB commands.
    others : list of (str, tuple of str)
        All other commands as (name, arguments).
    """

    questions: dict[str, Question] = field(default_factory=dict)
    clusterings: list[Clustering] = field(default_factory=list)
    others: list[tuple[str, tuple[str, ...]]] = field(default_factory=list)


_ARGUMENTS = {  # numbers of arguments; the last argument of TI, CL, ... is an item list, kept as text
    "RO": (1, 2),
    "LS": (1, 1),
    "TR": (1, 1),
    "ST": (1, 1),
    "LT": (1, 1),
    "AU": (1, 1),
    "CO": (1, 1),
    "SH": (0, 0),
    "UT": (0, 1),
    "CL": (1, 1),
}


def read_edit_script(path: str | Path) -> EditScript:
    """Read the questions and commands of an HHEd script.

    Parameters
    ----------
    path : path
        Script with the commands QS, TB, RO, LS, TR, ST, LT, AU, CO, SH, UT, CL, TI.

    Returns
    -------
    EditScript

    Raises
    ------
    FormatError
        With file and line, for other commands and for malformed ones.

    References
    ----------
    HTK Book 3.4, section 10.5 and reference section of HHEd.
    """
    tokens = Tokens(path)
    script = EditScript()
    while tokens.next:
        line = tokens.line
        command = tokens.next
        if command == "QS":
            tokens.add_question(script.questions)
            continue
        tokens.at += 1
        if command == "TB":
            script.clusterings.append(_clustering(tokens))
        elif command == "TI":
            name = tokens.name("the name of a macro")
            script.others.append((command, (name, _item_list(tokens))))
        elif command in _ARGUMENTS:
            low, high = _ARGUMENTS[command]
            arguments = []
            while tokens.next and tokens.line == line:
                arguments.append(tokens.name("an argument"))
            if not low <= len(arguments) <= high:
                raise tokens.fault(f"{low} to {high} arguments", f"{command} with {len(arguments)} arguments", line)
            script.others.append((command, tuple(arguments)))
        else:
            raise tokens.fault(f"QS, TB, TI, {', '.join(_ARGUMENTS)}", f"command {command[:20]!r}", line)
    return script


def _clustering(tokens: Tokens) -> Clustering:
    """Parse the arguments of TB: threshold, prefix, and items, which must be one state of all models of one phone."""
    line = tokens.line
    if not is_number(tokens.next):
        raise tokens.fault("TB's threshold")
    threshold = float(tokens.next)
    tokens.at += 1
    prefix = tokens.name("the prefix of the tied states' names")
    items = _item_list(tokens)
    state = _TB_STATE.findall(items)
    names = [n for n in re.split(r"[(){},\s\"']+", items.split(".state")[0]) if n]
    phones = {split_triphone(name)[1] for name in names}
    if len(state) != 1 or len(phones) != 1 or phones & {"*"}:
        raise tokens.fault('one state of one phone: {("aa","*-aa+*").state[2]}', f"items {items[:60]!r}", line)
    return Clustering(threshold, prefix, phones.pop(), int(state[0]))


def _item_list(tokens: Tokens) -> str:
    """Return the text from { to the matching }, without blanks."""
    tokens.require("{")
    pieces = ["{"]
    depth = 1
    while depth:
        if not tokens.next:
            raise tokens.fault("} at the end of the items")
        depth += {"{": 1, "}": -1}.get(tokens.next, 0)
        pieces.append(tokens.next)
        tokens.at += 1
    return "".join(pieces)


def write_edit_script(path: str | Path, script: EditScript) -> None:
    """Write an HHEd script: questions, then TB commands, then the others.

    Parameters
    ----------
    path : path
        File to write.
    script : EditScript

    Raises
    ------
    FormatError
        For an empty name.
    """
    with atomic_write(path, "w") as file:
        file.writelines(f"{question_line(question)}\n" for question in script.questions.values())
        for tb in script.clusterings:
            items = ",".join(f'"{pattern}"' for pattern in _all_of(tb.phone))
            file.write(f"TB {tb.threshold:g} {quoted(tb.prefix, path)} {{({items}).state[{tb.state}]}}\n")
        for command, arguments in script.others:
            texts = [a if command == "TI" and i else quoted(a, path) for i, a in enumerate(arguments)]
            file.write(" ".join([command, *texts]) + "\n")


def _all_of(phone: str) -> Iterable[str]:
    """Return patterns that match all models of a phone."""
    return (phone, f"*-{phone}+*", f"{phone}+*", f"*-{phone}")
