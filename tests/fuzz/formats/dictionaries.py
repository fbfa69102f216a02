"""Pronunciation dictionaries of all forms, and what belongs to them."""

from readers.dictionaries.forms import FORMS, read_any_dictionary
from readers.dictionaries.phones import change_phones, read_phone_replacements, without_stress
from readers.errors import ArgonautError
from readers.htk.dictionary import read_dictionary, write_dictionary
from tests.fuzz.format import Format, text

HTK = ('A [x y] 0.5 ey\n"B C" b iy\n!NULL []\n<s> [] sil\n\\101B a\n', "ABLE ey b ax l\nABLE 0.3 ey b l\n'EM ax m\n")
CMU = (
    ";;; comment\nABOUT  AH0 B AW1 T\n'BOUT  B AW1 T\nA  AH0\nA(2)  EY1 # article\n",
    "READ R IY1 D\nREAD(2) R EH1 D\n",
)
KALDI = (
    "!SIL SIL\nabout ax b aw t\n<UNK> SPN\n'em ax m\n",
    "a 1.0 0.5 0.9 1.1 ey\na 0.3 0.5 0.9 1.1 ax\n",
    "a 0.8 ey\nb 1.0 b iy\n",
)
MFA = ("new york\tn uw y ao r k\na\tey\n", "a\t0.9\t0.2\t1.1\t0.8\tey\nb\t1.0\t0.2\t1.1\t0.8\tb iy\n")


def dictionary(path) -> None:
    """Read a dictionary in every form, collecting faults in some; write and change what was found."""
    read_dictionary(path, lambda fault: None) if path.stat().st_size % 2 else None
    for form in FORMS:
        try:
            read_any_dictionary(path, form, lambda fault: None)
        except ArgonautError:
            continue
    found = read_any_dictionary(path)
    write_dictionary(path.with_suffix(".out"), found)
    again = read_any_dictionary(path.with_suffix(".out"), "htk")
    change_phones(again, lambda phone: (without_stress(phone),))


FORMATS = (
    *(
        Format(f"{name} dictionary", text(*seeds), dictionary)
        for name, seeds in (("htk", HTK), ("cmu", CMU), ("kaldi", KALDI), ("mfa", MFA))
    ),
    Format("phone replacements", text("# x\nax ah\nq\nax-h ax h\n"), read_phone_replacements),
)
