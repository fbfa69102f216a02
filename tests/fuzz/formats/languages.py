"""Configurations, network descriptions and editing scripts, used as tests/languages does; grammars of sentences."""

import contextlib
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
from tests.languages import examples, targets

LONGEST = 1 << 16  # a network of ten thousand statements rightly takes seconds

WORDS = ("one", "two", "three", "[unk]")
LONGEST_GRAMMAR = 1 << 14
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
J=0 S=0 E=1 l=0.5
J=1 S=0 E=2 l=0.25
J=2 S=1 E=2
J=3 S=2 E=1
J=4 S=2 E=3
"""
PHONES = {"one": "ab", "two": "b", "three": "cab", "<s>": ("sil",), "</s>": ("sil",)}
MODELS = PhoneModels({phone: (f"{phone}_s2", f"{phone}_s3") for phone in ("a", "b", "c", "sil")})
DICTIONARY = [Pronunciation(word, None, None, tuple(phones)) for word, phones in PHONES.items()]


def of(texts: tuple[str, ...] | list[str], ending: str):
    """A seed function that chooses one of the examples, or one of the project's own files."""
    chosen = [*texts, *examples.of_project(ending)]
    return lambda rng, directory: rng.choice(chosen).encode()


def using(target):
    """Use the text of a file, if it is UTF-8, in the directory of the file."""

    def use(path: Path):
        text = path.read_bytes().decode("utf-8", "replace")
        with contextlib.chdir(path.parent):
            target(text)

    return use


def in_models(target):
    def use(path: Path):
        targets.make_files(path.parent)
        using(target)(path)

    return use


def grammar_of(text: str):
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


def compile_grammar(path: Path) -> None:
    """Compile the grammar, and make it ready for decoding."""
    options = GrammarOptions(drop_missing=True)
    built = build_grammar_graph(open_grammar(path), MODELS, DICTIONARY, None, options)
    Decoder(precompile(built.acceptor, None, None, MODELS.states, built.outputs))


FORMATS = (
    Format("cntk configuration", of(examples.CONFIGS, ".cntk"), using(targets.read_configuration), most_bytes=LONGEST),
    Format("network description", of(examples.NDLS, ".ndl"), using(targets.build_description), most_bytes=LONGEST),
    Format("editing script", of(examples.MELS, ".mel"), in_models(targets.run_script), most_bytes=LONGEST),
    Format("JSGF grammar", grammar_of(JSGF), compile_grammar, MUTATORS, most_bytes=LONGEST_GRAMMAR),
    Format("HParse grammar", grammar_of(HPARSE), compile_grammar, MUTATORS, most_bytes=LONGEST_GRAMMAR),
    Format("SLF grammar", grammar_of(SLF), compile_grammar, MUTATORS, most_bytes=LONGEST_GRAMMAR),
    Format("phrase list", of_phrases, compile_grammar, MUTATORS, most_bytes=LONGEST_GRAMMAR),
)
