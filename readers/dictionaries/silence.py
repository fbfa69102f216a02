"""Probabilities of pronunciations and of silence beside them, in the files of Kaldi and MFA.

lexiconp.txt          `word probability phone ...`
lexiconp_silprob.txt  `word probability after from_silence from_speech phone ...`, the numbers of SilenceProbabilities
silprob.txt           those of an utterance: `<s> after`, `</s>_s from_silence`, `</s>_n from_speech`; `overall`, the
                      probability of silence before words
mfa.dict              MFA's form of lexiconp_silprob.txt, with tabs; lines of <s> and </s>, which MFA does not read,
                      have what silprob.txt has
"""

from collections.abc import Iterable, Iterator
from pathlib import Path

from readers.common.files import write_lines
from readers.common.text import read_rows, to_numbers
from readers.errors import FormatError
from readers.htk.dictionary import Pronunciation, SilenceProbabilities

SENTENCE_START, SENTENCE_END = "<s>", "</s>"
LEXICONP, LEXICONP_SILPROB, SILPROB, MFA = "lexiconp.txt", "lexiconp_silprob.txt", "silprob.txt", "mfa.dict"
NAMES = (SENTENCE_START, f"{SENTENCE_END}_s", f"{SENTENCE_END}_n", "overall")


def read_silprob(path: str | Path) -> list[Pronunciation]:
    """Read silprob.txt.

    Parameters
    ----------
    path : path

    Returns
    -------
    list of Pronunciation
        <s> and </s>, without phones; `after` of </s> is the overall probability of silence.

    Raises
    ------
    FormatError
        With file and line, for lines other than the four, and numbers out of range.

    References
    ----------
    Kaldi, utils/dict_dir_add_pronprobs.sh.
    """
    numbers: dict[str, float] = {}
    for where, fields in read_rows(path):
        try:
            name, text = fields
            (number,) = to_numbers([text])
            most = 1.0 if name in (SENTENCE_START, "overall") else 1e9
            if name not in NAMES or name in numbers or not 0 <= number <= most:
                raise ValueError
        except ValueError:
            raise FormatError(
                f"{where}: {' '.join(fields)[:60]!r}; expected each of {', '.join(NAMES)} once, with a probability or "
                "a factor"
            ) from None
        numbers[name] = number
    lacking = [name for name in NAMES if name not in numbers]
    if lacking:
        raise FormatError(f"{path}: no line of {lacking[0]}; expected one")
    after, *factors, overall = (numbers[name] for name in NAMES)
    return [
        Pronunciation(SENTENCE_START, None, None, (), SilenceProbabilities(after)),
        Pronunciation(SENTENCE_END, None, None, (), SilenceProbabilities(overall, *factors)),
    ]


def write_with_silence(directory: str | Path, entries: Iterable[Pronunciation]) -> None:
    """Write a dictionary with probabilities of pronunciations and silence: the four files that the module names.

    Parameters
    ----------
    directory : path
    entries : iterable of Pronunciation
        All with both; those of <s> and </s> have the phone of silence.  Output symbols are not written, and words with
        blanks are not in Kaldi's files, which cannot have them.
    """
    directory = Path(directory)
    entries = list(entries)
    ends = {entry.word: entry.silence for entry in entries if entry.word in (SENTENCE_START, SENTENCE_END)}
    words = [entry for entry in entries if entry.word not in ends and len(entry.word.split()) == 1]
    write_lines(directory / LEXICONP, _lines(words, " ", 1))
    write_lines(directory / LEXICONP_SILPROB, _lines(words, " ", 4))
    write_lines(directory / MFA, _lines(entries, "\t", 4))
    start, end = ends[SENTENCE_START], ends[SENTENCE_END]
    assert start is not None
    assert end is not None
    values = (start.after, end.from_silence, end.from_speech, end.after)
    write_lines(directory / SILPROB, (f"{name} {value:.2f}" for name, value in zip(NAMES, values)))


def _lines(entries: Iterable[Pronunciation], separator: str, count: int) -> Iterator[str]:
    for entry in entries:
        assert entry.probability is not None
        assert entry.silence is not None
        numbers = [f"{entry.probability:.6g}", *(f"{number:.2f}" for number in entry.silence)]
        yield separator.join((entry.word, *numbers[:count], " ".join(entry.phones)))
