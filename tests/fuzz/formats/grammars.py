"""Grammars of all kinds, compiled to decoding graphs over a few monophones."""

import json
import random
from pathlib import Path

from decoder.grammars import GrammarOptions, build_grammar_graph, open_grammar
from decoder.graph import PhoneModels
from decoder.graph.compiled_graph import precompile
from decoder.search.decoder import Decoder
from readers.htk.dictionary import Pronunciation
from tests.fuzz.format import Format
from tests.fuzz.mutators import Mutator

WORDS = ("one", "two", "three", "[unk]")
LONGEST = 1 << 14
JSGF = r"""#JSGF V1.0 UTF-8 en;
grammar numbers;
// a comment
public <numbers> = [please] <number>+ {tag \} end} (one | /* in between */ two)*;
<number> = /3/ one | /1.5/ "two" | /1e-3/ <numbers.more>;
<more> = three <more> | <NULL> | <VOID> | "[unk]";
"""
HPARSE = r"""$digit = one | two; /* a comment */
$name = WD_BEGIN%three th r iy WD_END%three | \[unk\];
( !ENTER < $digit > [ $name ] { one%x | two } !EXIT )
"""
SLF = """VERSION=1.0
base=0
N=4 L=5
I=0 W=!NULL
I=1 W=one
I=2 W="[unk]"
I=3 W=!NULL
J=0 S=0 E=1 l=-0.5
J=1 S=0 E=2 l=-1.25
J=2 S=1 E=2
J=3 S=2 E=1
J=4 S=2 E=3
"""
PHONES = {"one": "ab", "two": "b", "three": "cab", "<s>": ("sil",), "</s>": ("sil",)}
MODELS = PhoneModels({phone: (f"{phone}_s2", f"{phone}_s3") for phone in ("a", "b", "c", "sil")})
DICTIONARY = [Pronunciation(word, None, None, tuple(phones)) for word, phones in PHONES.items()]


def of(text: str):
    return lambda rng, directory: text.encode()


def of_phrases(rng: random.Random, directory: Path) -> bytes:
    """A random list of phrases."""
    return json.dumps([" ".join(rng.choices(WORDS, k=rng.randint(1, 4))) for _ in range(rng.randint(1, 6))]).encode()


def nested(content: bytes, rng: random.Random) -> bytes:
    """Repeat a piece, or put a part in many brackets."""
    begin, end = sorted(rng.randrange(len(content) + 1) for _ in range(2))
    if rng.random() < 0.5:
        return content[:end] + content[begin:end] * rng.choice((2, 10, 200)) + content[end:]
    opening, closing = rng.choice((b"()", b"[]", b"{}", b"<>")).decode()
    times = rng.choice((1, 20, 1000))
    return (
        content[:begin] + (opening * times).encode() + content[begin:end] + (closing * times).encode() + content[end:]
    )


MUTATORS: tuple[Mutator, ...] = (nested,)


def use(path: Path) -> None:
    """Compile the grammar, and make it ready for decoding."""
    options = GrammarOptions(drop_missing=True)
    built = build_grammar_graph(open_grammar(path), MODELS, DICTIONARY, None, options)
    Decoder(precompile(built.acceptor, None, None, MODELS.states, built.outputs))


FORMATS = (
    Format("JSGF grammar", of(JSGF), use, MUTATORS, most_bytes=LONGEST),
    Format("HParse grammar", of(HPARSE), use, MUTATORS, most_bytes=LONGEST),
    Format("SLF grammar", of(SLF), use, MUTATORS, most_bytes=LONGEST),
    Format("phrase list", of_phrases, use, MUTATORS, most_bytes=LONGEST),
)
