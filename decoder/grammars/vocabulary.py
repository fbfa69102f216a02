"""The pronunciations of the words of a grammar."""

from collections.abc import Sequence

from decoder.graph.lexicon import Lexicon
from decoder.lm.language_model import SENTENCE_END, SENTENCE_START
from readers.common.faults import listed
from readers.common.text import spelling_of
from readers.errors import GraphError
from readers.language.grammars.network import UNKNOWN, WordNetwork

EMPTY_WORDS = {"!NULL", "!ENTER", "!EXIT", "!SENT_START", "!SENT_END", "SENT-START", "SENT-END"}  # of HTK's examples
EMPTY_WORDS |= {SENTENCE_START, SENTENCE_END}


def spelled_as_dictionary(
    network: WordNetwork, lexicon: Lexicon, silences: Sequence[str], drop: bool = False
) -> tuple[WordNetwork, list[str]]:
    """Return the network with its words as the dictionary spells them, and the words that were left out.

    A word that differs only in case from exactly one word of the dictionary is that word.  Words that the dictionary
    pronounces as silence, and HTK's names for the beginning and the end of a sentence, become empty arcs.  With `drop`,
    arcs with words that are not in the dictionary are left out.  Raises GraphError otherwise.
    """
    silent = {word for word, phones, _ in lexicon.words if all(phone in silences for phone in phones)}
    spoken = {word for word, phones, _ in lexicon.words if any(phone not in silences for phone in phones)}
    spell = spelling_of(spoken)
    spelling: dict[str, str | None] = {}
    missing = []
    for word in network.words:
        if word == UNKNOWN or word in spoken:
            spelling[word] = word
        elif word in silent or word in EMPTY_WORDS:
            spelling[word] = None
        elif spell(word) in spoken:
            spelling[word] = spell(word)
        else:
            missing.append(word)
    if missing and not drop:
        raise GraphError(f"{network.where}: not in the dictionary: {listed(missing)}; expected words of the dictionary")
    arcs = [
        arc if arc.word is None else arc._replace(word=spelling[arc.word])
        for arc in network.arcs
        if arc.word is None or arc.word in spelling
    ]
    return WordNetwork(network.num_nodes, arcs, network.where), missing
