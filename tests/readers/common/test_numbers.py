"""Text formats take numbers of ASCII digits only: Python would also take 1_000 and the digits of other scripts."""

import pytest

from readers.errors import ArgonautError
from readers.htk.mlf import read_mlf
from readers.htk.mmf import read_mmf
from readers.htk.scp import read_scp
from readers.htk.slf import read_slf
from readers.htk.trees import read_trees
from readers.kaldi.ark import read_ark_scp, read_matrix, scan_ark
from readers.language.arpa import read_arpa
from readers.language.att import read_acceptor
from readers.results.nbest import read_nbest
from readers.results.timed_words import read_ctm
from readers.tables.hmm_tables import read_cntkmap, read_lookahead, read_transitions
from readers.tables.priors import read_priors
from readers.tables.text_matrix import read_text_matrix
from readers.tables.timit import read_segments

# A reader and a text, where @ is to be replaced by 10.
TEXTS = {
    "arpa, log-probability": (read_arpa, "\\data\\\nngram 1=1\n\\1-grams:\n-@ a -1\n\\end\\\n"),
    "arpa, back-off": (read_arpa, "\\data\\\nngram 1=1\n\\1-grams:\n-1 a -@\n\\end\\\n"),
    "arpa, some back-offs": (read_arpa, "\\data\\\nngram 1=2\n\\1-grams:\n-1 a -@\n-1 b\n\\end\\\n"),
    "arpa, count": (
        read_arpa,
        "\\data\\\nngram 1=@\n\\1-grams:\n" + "".join(f"-1 w{i}\n" for i in range(10)) + "\\end\\\n",
    ),
    "acceptor, source": (read_acceptor, "@ 1 a\n1\n"),
    "acceptor, target": (read_acceptor, "0 @ a\n10\n"),
    "acceptor, cost": (read_acceptor, "0 1 a @\n1\n"),
    "acceptor, final": (read_acceptor, "0 1 a\n1 @\n"),
    "transitions": (read_transitions, "[a_s2] -0.6931471 -0.69314@\n"),
    "cntkmap": (read_cntkmap, "[a_s2] @\n"),
    "lookahead": (read_lookahead, "a -@\n"),
    "priors": (read_priors, "0.5 0.@\n"),
    "text matrix": (read_text_matrix, "1 2\n3 @\n"),
    "Kaldi archive": (lambda path: read_matrix(path, scan_ark(path)[0].offset), "u [\n 1 @ ]\n"),
    "slf, time": (read_slf, "VERSION=1.0\nN=2 L=1\nI=0 t=0.0\nI=1 t=@\nJ=0 S=0 E=1 W=x a=-5\n"),
    "slf, score": (read_slf, "VERSION=1.0\nN=2 L=1\nI=0 t=0.0\nI=1 t=1.5\nJ=0 S=0 E=1 W=x a=-@\n"),
    "slf, segments": (read_slf, "VERSION=1.0\nN=2 L=1\nI=0 t=0.0\nI=1 t=1.5\nJ=0 S=0 E=1 W=x d=:a,0.1,-@:\n"),
    "n-best": (read_nbest, "u -@ -1 1 a\n"),
    "ctm": (read_ctm, "u 1 0.5 @ a\n"),
    "segments": (read_segments, "0 @ h#\n"),
    "mmf": (
        read_mmf,
        '~h "a"\n<BEGINHMM>\n<NUMSTATES> 3\n<STATE> 2\n<MEAN> 2\n1 @\n<VARIANCE> 2\n1 1\n'
        "<TRANSP> 3\n0 1 0\n0 .5 .5\n0 0 0\n<ENDHMM>\n",
    ),
}


@pytest.mark.parametrize("number", ["1_0", "1٠", "١0"])
@pytest.mark.parametrize("name", TEXTS)
def test_numbers_have_ascii_digits(tmp_path, name, number):
    reader, text = TEXTS[name]
    path = tmp_path / "f"
    path.write_text(text.replace("@", "10"), encoding="utf-8")
    reader(path)
    path.write_text(text.replace("@", number), encoding="utf-8")
    with pytest.raises(ArgonautError, match=str(path)):
        reader(path)


@pytest.mark.parametrize("number", ["1_0", "1٠", "١0"])
def test_other_digits_in_optional_places_belong_to_names(tmp_path, number):
    """Where a number may be missing, a token that is none is a name."""
    path = tmp_path / "f"
    path.write_text(f'#!MLF!#\n"*/u.lab"\n0 10 a {number}\n{number} 20 b 5\n0 10 c_1_2 7\n.\n', encoding="utf-8")
    labels = read_mlf(path)["u"]
    assert [(label.start, label.name, label.score, label.aux) for label in labels] == [
        (0, "a", None, ((number, None),)),
        (None, number, 20.0, (("b", 5.0),)),
        (0, "c_1_2", 7.0, ()),
    ]
    path.write_text(f"u a.ark:{number}\n", encoding="utf-8")
    assert read_ark_scp(path)[0].path == f"a.ark:{number}"
    path.write_text(f"u=a.htk[0,{number}]\n", encoding="utf-8")
    with pytest.raises(ArgonautError, match="malformed range"):
        read_scp(path)
    path.write_text(f'QS "q" {{ "a" }}\na[{number}]\n "x"\n', encoding="utf-8")
    with pytest.raises(ArgonautError):
        read_trees(path)
