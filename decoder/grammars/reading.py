"""Opens grammars of all kinds."""

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from readers.common.text import read_text
from readers.errors import ConfigError, FormatError
from readers.htk.slf import read_slf
from readers.language.grammars.hparse import parse_hparse
from readers.language.grammars.jsgf import parse_jsgf
from readers.language.grammars.network import MOST_ARCS, NetworkBuilder, WordNetwork
from readers.language.grammars.parsing import MOST_SHOWN
from readers.language.grammars.phrase_list import parse_phrase_list, phrase_network
from readers.results.lattice import NULL_WORD

PARSERS = {"jsgf": parse_jsgf, "hparse": parse_hparse, "phrases": parse_phrase_list}
FIRST_SYMBOLS = "a grammar, which begins with #JSGF, [ (list of phrases), $ or ( (HParse), VERSION= or N= (SLF)"
_SLF = re.compile(r"\s*(?:#[^\n]*\n\s*)*(?:VERSION|V|UTTERANCE|U|N|NODES)\s*=")


def open_grammar(grammar: str | Path | Sequence[str], kind: str | None = None) -> WordNetwork:
    """Open a grammar.

    Parameters
    ----------
    grammar : str, Path or list of str
        A file; or, with `kind`, the text of a grammar; or a list of phrases.
    kind : {"jsgf", "hparse", "phrases"}, optional
        Of a text.  The kind of a file, also "slf", is seen from its content.

    Returns
    -------
    WordNetwork

    Raises
    ------
    FormatError
        For a grammar that is malformed or too large.
    ConfigError
        For an unknown kind.
    OSError

    Examples
    --------
    >>> open_grammar(["turn on", "turn off"]).words
    ['turn', 'on', 'off']
    >>> open_grammar("#JSGF V1.0; grammar g; public <s> = yes | no;", "jsgf").words
    ['yes', 'no']
    """
    if not isinstance(grammar, (str, Path)):
        return phrase_network(grammar)
    if kind is not None:
        if kind not in PARSERS:
            raise ConfigError(f"kind of grammar {kind!r}; expected {', '.join(PARSERS)}; or a file")
        return PARSERS[kind](str(grammar))
    text = read_text(grammar)
    detected = kind_of(text)
    if detected == "hparse" and not text.lstrip().startswith(("$", "(", "/*")):
        line, start = next(((i, s) for i, s in enumerate(text.splitlines(), 1) if s.strip()), (1, "the end"))
        raise FormatError(f"{grammar}:{line}: {start.strip()[:MOST_SHOWN]}; expected {FIRST_SYMBOLS}")
    return slf_network(grammar) if detected == "slf" else PARSERS[detected](text, str(grammar))


def kind_of(text: str) -> str:
    """Return the kind of a grammar by its first symbols."""
    start = text.lstrip()
    if start.startswith("#JSGF"):
        return "jsgf"
    if start.startswith("["):
        return "phrases"
    return "slf" if _SLF.match(text) else "hparse"


def slf_network(path: str | Path) -> WordNetwork:
    """Read a word network in HTK's standard lattice format; acoustic scores and times are ignored.

    Raises FormatError, also for a network with several first or last nodes, and for log probabilities above 0.
    """
    lattice = read_slf(path)
    if lattice.num_links > MOST_ARCS:
        raise FormatError(f"{path}: {lattice.num_links} links; expected at most {MOST_ARCS}")
    nodes = np.arange(lattice.num_nodes)
    first, last = np.setdiff1d(nodes, lattice.end), np.setdiff1d(nodes, lattice.start)
    for what, ends in (("first", first), ("last", last)):
        if len(ends) != 1:
            raise FormatError(f"{path}: {len(ends)} {what} nodes; expected one, with links only on one side of it")
    builder = NetworkBuilder(str(path))
    number = [builder.node() for _ in nodes]
    builder.add(WordNetwork.START, number[first[0]])
    builder.add(number[last[0]], WordNetwork.END)
    for start, end, word, lm in zip(lattice.start, lattice.end, lattice.word, lattice.lm.tolist()):
        if lm > 0:
            raise FormatError(f"{path}: l={lm:g} of {word}; expected the logarithm of a probability, at most 0")
        if lm > -np.inf:
            builder.add(number[start], number[end], None if word == NULL_WORD else word, -lm)
    return builder.network()
