"""Lists of phrases, as vosk's clients send them: `["turn on", "turn off", "[unk]"]`."""

import json
from collections.abc import Sequence

from readers.common.text import canonical, parse_json
from readers.errors import FormatError
from readers.language.grammars.network import NetworkBuilder, WordNetwork

MOST_PHRASES = 50_000


def parse_phrase_list(text: str, where: str = "phrase list") -> WordNetwork:
    """Parse a JSON list of phrases.

    Parameters
    ----------
    text : str
    where : str
        The file, for messages.

    Returns
    -------
    WordNetwork

    Raises
    ------
    FormatError
        For text that is not a JSON list of strings, and as `phrase_network`.

    Examples
    --------
    >>> parse_phrase_list('["turn on", "turn off"]').words
    ['turn', 'on', 'off']
    """
    try:
        phrases = parse_json(text)
    except json.JSONDecodeError as fault:
        raise FormatError(
            f'{where}:{fault.lineno}: {fault.msg}; expected a JSON list of phrases, such as ["turn on", "[unk]"]'
        ) from fault
    except ValueError as fault:
        raise FormatError(f'{where}: {fault}; expected a JSON list of phrases, such as ["turn on", "[unk]"]') from fault
    return phrase_network(phrases, where)


def phrase_network(phrases: Sequence[str], where: str = "phrase list") -> WordNetwork:
    """Make the network of a list of phrases.

    A sentence is one or more phrases, one after the other, since an utterance may contain several without a pause.

    Parameters
    ----------
    phrases : sequence of str
        The words of a phrase are separated by blanks.
    where : str
        For messages.

    Returns
    -------
    WordNetwork

    Raises
    ------
    FormatError
        For something else than strings, an empty phrase, no phrase at all, and too many.

    Examples
    --------
    >>> phrase_network(["turn on", "[unk]"]).words
    ['turn', 'on', '[unk]']
    """
    if not isinstance(phrases, (list, tuple)) or not all(isinstance(phrase, str) for phrase in phrases):
        raise FormatError(f'{where}: {str(phrases)[:60]}; expected a list of phrases, such as ["turn on", "[unk]"]')
    if not 0 < len(phrases) <= MOST_PHRASES:
        raise FormatError(f"{where}: {len(phrases)} phrases; expected 1 to {MOST_PHRASES}")
    builder = NetworkBuilder(where)
    begin, end = builder.node(), builder.node()
    builder.add(WordNetwork.START, begin)
    builder.add(end, begin)
    builder.add(end, WordNetwork.END)
    for number, phrase in enumerate(dict.fromkeys(phrases), start=1):
        words = canonical(phrase).split()
        if not words:
            raise FormatError(f"{where}: phrase {number} is empty; expected at least one word")
        node = begin
        for i, word in enumerate(words):
            after = end if i == len(words) - 1 else builder.node()
            builder.add(node, after, word)
            node = after
    return builder.network()
