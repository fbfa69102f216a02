"""Texts as words: the English table, tables of other languages, faults of tables."""

import pytest

from decoder.lm.options import NormalisationOptions
from decoder.lm.texts.normalisation import normalise_texts
from decoder.lm.texts.rules import TABLES, Rules
from readers.corpora.words import WordForms
from readers.errors import FormatError
from recipes.cli.main import main

ENGLISH = Rules(TABLES["english"])
ONES = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen"
).split()
TENS = "_ _ twenty thirty forty fifty sixty seventy eighty ninety".split()


def read(text, rules=ENGLISH):
    return " ".join(WordForms("lower").split(rules.apply(text)))


def cardinal(number):
    """The English name of a number below 10^9."""
    for scale, name in ((10**6, "million"), (1000, "thousand")):
        if number >= scale:
            quotient, remainder = divmod(number, scale)
            after = f" {'and ' * (remainder < 100)}{cardinal(remainder)}" if remainder else ""
            return f"{cardinal(quotient)} {name}{after}"
    if number >= 100:
        return f"{ONES[number // 100]} hundred" + (f" and {cardinal(number % 100)}" if number % 100 else "")
    if number < 20:
        return ONES[number]
    return TENS[number // 10] + (f" {ONES[number % 10]}" if number % 10 else "")


def test_numbers_have_their_english_names():
    for number in [*range(1100), 2300, 9999, 10_001, 70_100, 123_456, 1_000_000, 1_002_003, 987_654_321]:
        assert read(f"{number:,}") == cardinal(number)
    assert read("0123") == "zero one two three"
    assert read("1" * 20) == " ".join(["one"] * 20)


@pytest.mark.parametrize(
    ("written", "spoken"),
    [
        ("Mr. Hill: $3.50, May 4, 1921.", "mister hill three dollars fifty may fourth nineteen twenty one"),
        ("On the 31st of October, 1517", "on the thirty first of october fifteen seventeen"),
        ("4 July 1776, 2024-05-17, Jan. 3", "fourth of july seventeen seventy six may seventeenth twenty twenty four "
         "january third"),
        ("1905 1900 2000 2005 2010", "nineteen oh five nineteen hundred two thousand two thousand and five twenty ten"),
        ("the 1920s, 1900s and '84", "the nineteen twenties nineteen hundreds and eighty four"),
        ("6:05, 12:00, 3.30 p.m., 6.20 to 6.50 a.m.", "six oh five twelve o'clock three thirty p m six twenty to six "
         "fifty a m"),
        ("22nd 20th 100th 1,000th 112th", "twenty second twentieth one hundredth one thousandth one hundred and "
         "twelfth"),
        ("2 1/2 cups, 1/4 cup, 3/8 inch, 2-3/4", "two and a half cups one quarter cup three eighths inch two and three "
         "quarters"),
        ("$5 million, $1, £1,250 and $1.25", "five million dollars one dollar one thousand two hundred and fifty "
         "pounds and one dollar twenty five"),
        ("3.14 %, 50%, 5 kg, 14s.", "three point one four percent fifty percent five kilograms fourteen shillings"),
        ("Alexander II in World War II", "alexander the second in world war two"),
        ("St. James St., U.S.A. & No. 17", "saint james street u s a and number seventeen"),
        ("a 2-inch cube, 5-10 men at 3A", "a two inch cube five to ten men at three a"),
        ("Dogs' heads to-day, e.g. Dr. Who etc.", "dogs' heads to-day for example doctor who et cetera"),
    ],
)  # fmt: skip
def test_english(written, spoken):
    assert read(written) == spoken


def test_a_table_of_another_language(tmp_path):
    words = "null ein zwei drei vier fünf sechs sieben acht neun zehn elf zwölf >>zehn".split()
    (tmp_path / "german").write_text(
        "# German\n[number zahl]\n" + "".join(f"{i}: {word}\n" for i, word in enumerate(words))
        + "20: [>>und]zwanzig\n40: [>>und]vierzig\n80: [>>und]achtzig\n100: <<hundert[>>]\n"
        "[number jahr]\n0: =zahl=\n1100/100: <zahl<hundert[>zahl>]\n2000: =zahl=\n[words m]\n1 = Januar\n"
        "[rules]\n(\\d{1,2})\\.(\\d)\\.(\\d{4}) => der {1:zahl}te {2:m} {3:jahr}\n(\\d+) => {1:zahl}\n"
        "[abbreviations]\nz.B. = zum Beispiel\n",
        encoding="utf-8",
    )  # fmt: skip
    text = "z.B. 21 oder 345, 5.1.1984"
    expected = (
        "zum beispiel einundzwanzig oder dreihundertfünfundvierzig der fünfte januar neunzehnhundertvierundachtzig"
    )
    assert read(text, Rules(tmp_path / "german")) == expected


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("a = b", ":1: 'a = b'; expected a section such as"),
        ("[number]\n", ":1: '.number.'; expected a name for numbers and words only"),
        ("[number n]\n1: one", ":2: base 1; expected 0 for the first one"),
        ("[number n]\n0: zero\n5: five\n3: three", ":4: base 3; expected 0 for the first one, then rising ones"),
        ("[number n]\n0/1: zero", ":2: '0/1: zero'; expected `base: text`"),
        ("[number n]\n0: =m=", r":2: form 'm'; expected a section \[number m\]"),
        ("[number n]\n0: =n=", ":2: a rule that leads to itself; expected the text of a smaller number"),
        ("[number n]\n0: zero\n1: <<", ":3: a rule that leads to itself"),
        ("[number n]\n0: =m=\n[number m]\n0: zero\n2: =n=", ":5: a rule that leads to itself"),
        ("[rules]\nab", ":2: 'ab'; expected `pattern => replacement`"),
        ("[rules]\n( => a", ":2: missing .* in '\\('; expected a regular expression"),
        ("[rules]\na => {1}", ":2: group 1; the pattern has 0"),
        ("[rules]\n(a) => {1:x}", ":2: reading 'x'; expected a .number. form, a list of .words., or digits or letters"),
        ("[abbreviations]\nMr.", ":2: 'Mr.'; expected `written = spoken`"),
    ],
)
def test_faults_of_a_table_are_found_when_it_is_read(tmp_path, table, message):
    (tmp_path / "table").write_text(table)
    with pytest.raises(FormatError, match=message):
        Rules(tmp_path / "table")


def test_signs_alone_are_no_words(tmp_path):
    (tmp_path / "raw").write_text("a # b, $ & £\n#\n[_] <unk> c# ' % d\n", encoding="utf-8")
    normalise_texts(NormalisationOptions(text=(tmp_path / "raw",), output=tmp_path / "text"))
    assert (tmp_path / "text").read_text().splitlines() == ["a b and", "<unk> c# d"]


def test_the_command_writes_one_sentence_per_line(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "raw").write_text("Mr. A has 2.\n...\nNo. 3, ٣!\n", encoding="utf-8")
    assert main(["lm", "normalise", "--text", "raw", "--case", "upper", "-o", "text"]) == 0
    assert (tmp_path / "text").read_text(encoding="utf-8") == "MISTER A HAS TWO\nNUMBER THREE THREE\n"
    assert capsys.readouterr().out == "text: 2 sentences, 7 words\n"
    (tmp_path / "table").write_text("[abbreviations]\nMr. = Herr\n")
    assert main(["lm", "normalise", "--text", "raw", "--table", "table", "-o", "text"]) == 0
    assert capsys.readouterr().out == "words with digits: 2, 3, ٣\ntext: 2 sentences, 7 words\n"
    (tmp_path / "table").write_text("[rules]\nx\n")
    assert main(["lm", "normalise", "--text", "raw", "--table", "table", "-o", "other"]) == 2
    assert not (tmp_path / "other").exists()
