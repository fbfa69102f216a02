"""Lookup and conversion of configuration values.  Examples marked "book" stand in CNTK book 3.9 and 5.1.3."""

import math
from pathlib import Path

import pytest

from readers.config.config import Config, Schedule
from readers.config.render import render
from readers.errors import ConfigError


def config(text: str) -> Config:
    return Config.from_text(text, "f.cntk")


def test_book_example_of_sets_and_arrays():
    c = config(
        "block1=[id=1;size=256]\n"
        'block2=[\n subblock=[string="hi";num=5]\n value=1e-10\n array=10:"this is a test":1.25\n]\n'
    )
    assert c.block("block1").int("size") == 256
    inner = c.block("block2")
    assert inner.block("subblock").text("string") == "hi"
    assert inner.float("value") == 1e-10
    assert inner.array("array") == ["10", "this is a test", "1.25"]


def test_book_example_of_repetition():
    c = config("minibatchSize=256:512:512:512:1024\nsame=256:512*3:1024")
    assert c.ints("same") == c.ints("minibatchSize") == (256, 512, 512, 512, 1024)


def test_book_example_of_own_separators():
    c = config("name=[|parameter1=value1|parameter2=value2|parameter3=value3\n]\narray={|c:\\temp\\new.txt|12*3|1e-12}")
    assert [c.block("name").text(f"parameter{i}") for i in (1, 2, 3)] == ["value1", "value2", "value3"]
    assert c.array("array") == ["c:\\temp\\new.txt", "12", "12", "12", "1e-12"]


def test_book_example_of_repeated_sets_and_of_comments():
    c = config('params=[a=1;b=2;c=3]\nparams=[c=5;d=6;e=7]\nstderr=c:\\cntk # "_x.log"\nvar=1#INF')
    params = c.block("params")
    assert {name: params.int(name) for name in params.names()} == {"a": 1, "b": 2, "c": 5, "d": 6, "e": 7}
    assert c.text("stderr") == "c:\\cntk"
    assert c.float("var") == math.inf


def test_merging_goes_down_into_nested_blocks_and_replaces_arrays_whole():
    c = config("t=[SGD=[a=1;lr=1:2:3];x=1]\nt=[sgd=[b=2;LR=9]]")
    sgd = c.block("t").block("SGD")
    assert (sgd.int("a"), sgd.int("b"), sgd.floats("lr")) == (1, 2, (9.0,))
    assert c.block("t").int("x") == 1


@pytest.mark.parametrize(("text", "is_block"), [("a=1\na=[b=2]", True), ("a=[b=2]\na=1", False)])
def test_block_and_plain_value_replace_each_other(text, is_block):
    assert config(text).is_block("a") is is_block


def test_names_are_inherited_outwards_and_innermost_wins():
    c = config("file=top\ntrace=1\nt=[file=mid\n reader=[features=[dim=3]]]")
    features = c.block("T").block("READER").block("Features")
    assert features.text("FILE") == "mid"
    assert features.int("traceLEVEL", 7) == 7
    assert features.int("trace") == 1
    assert features.has("trace")
    assert not features.has_own("trace")
    assert features.names() == ["dim"]
    assert features.full_name("dim") == "t.reader.features.dim"


def test_block_found_further_out_sees_the_names_of_the_one_that_asked():
    c = config("reader=[scp=$Set$.scp]\ntrain=[Set=tr]\ntest=[Set=te]")
    assert c.block("train").block("reader").text("scp") == "tr.scp"
    assert c.block("test").block("reader").text("scp") == "te.scp"


def test_reference_is_seen_from_the_block_that_sets_the_value():
    c = config("Root=/top\nfile=$Root$/x\nt=[Root=/inner]")
    assert c.block("t").text("file") == "/top/x"


def test_references_are_recursive_lazy_and_may_stand_anywhere():
    c = config("A=$B$\nlog=$Root$\\$Run$.log\nsize=$N$*2:$N$\nB=$C$\nRoot=exp\nRun=r1\nN=5\nC=Hello.txt")
    assert c.text("A") == "Hello.txt"
    assert c.path("log") == Path("exp/r1.log")
    assert c.ints("size") == (5, 5, 5)


@pytest.mark.parametrize("text", ["cost $5", "c:\\x$\\y$", "$1$", "100$", "$a b$", "$$"])
def test_dollar_without_a_name_is_literal(text):
    assert config(f"v={text}").text("v") == text


def test_whole_reference_stands_for_a_block_or_a_long_array():
    c = config("Test=[\n file=a\n n=$N$\n]\nreader=$Test$\nN=1\nreader=[file=b]\narr={\n1\n2}\nsame=$arr$")
    assert c.block("reader").text("file") == "b"
    assert c.block("reader").int("n") == 1
    assert c.block("Test").text("file") == "a"
    assert c.ints("same") == (1, 2)


def test_reference_loop_is_an_error_that_names_the_loop():
    c = config("x=$A$\nA=1$B$\nB=$A$")
    with pytest.raises(ConfigError, match=r"f.cntk:2: \$A\$ refers to itself: \$A\$ .*:2\) -> \$B\$ .*:3\) -> \$A\$"):
        c.text("x")
    with pytest.raises(ConfigError, match="refers to itself"):
        c.text("A")
    with pytest.raises(ConfigError, match="refers to itself"):
        config("a=$b$\nb=$a$").block("a")


def test_value_that_refers_to_its_own_name_means_the_one_further_out():
    c = config("Dim=3\nt=[dim=1$Dim$\n u=[DIM=$dim$]]")
    assert c.block("t").int("dim") == 13
    assert c.block("t").block("u").int("dim") == 13
    with pytest.raises(ConfigError, match=r"f.cntk:1: \$x\$ refers to itself: \$x\$ \(f.cntk:1\) -> \$x\$"):
        config("x=1$X$").text("x")


def test_missing_reference_names_the_value_and_the_nearest_name():
    c = config("t=[reader=[\nscp=$ScpDri$/x]]\nScpDir=/d")
    reader = c.block("t").block("reader")
    with pytest.raises(ConfigError, match=r"f.cntk:2: \$ScpDri\$ in t.reader.scp is not set.*did you mean ScpDir"):
        reader.text("scp")
    assert c.block("t").block("reader").int("other", 3) == 3  # nobody asked for scp


def test_several_lines_cannot_stand_within_a_value():
    with pytest.raises(ConfigError, match=r"f.cntk:3: \$A\$ has several lines"):
        config("A={1\n2}\nb=x$A$").text("b")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("true", True),
        ("T", True),
        ("1", True),
        ("tRUE", True),
        ("f", False),
        ("False", False),
        ("0", False),
        ('""', False),
    ],
)
def test_booleans(text, value):
    assert config(f"v={text}").bool("v", None) is value


def test_name_alone_is_true():
    c = config("b=[x=1;flag;y=2]\ntop")
    assert c.block("b").bool("flag")
    assert c.bool("top")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("-2.5e-3", -0.0025),
        ("1#INF", math.inf),
        ("-1#inf", -math.inf),
        ("1.#INF", math.inf),
        ("inf", math.inf),
        (".5", 0.5),
    ],
)
def test_floats(text, value):
    assert config(f"v={text}").float("v") == value


@pytest.mark.parametrize(
    ("text", "value"),
    [("12", 12), ("-3", -3), ("1e6", 10**6), ("256.0", 256), ("-9223372036854775807", 1 - 2**63), ("0" * 5000, 0)],
)
def test_integers(text, value):
    assert config(f"v={text}").int("v") == value


@pytest.mark.parametrize(
    ("text", "ask", "expected"),
    [
        ("v=12x", lambda c: c.int("v"), r"^f.cntk:1: v is '12x'; expected an integer$"),
        ("v=1.5", lambda c: c.int("v"), "expected an integer"),
        ("v=1_000", lambda c: c.int("v"), "expected an integer"),
        ("v=9223372036854775808", lambda c: c.int("v"), "expected an integer"),
        ("v=1e300", lambda c: c.int("v"), "expected an integer"),
        ("v=1e999", lambda c: c.int("v"), "expected an integer"),
        (f"v={'1' * 5000}", lambda c: c.int("v"), "expected an integer"),
        ("\nv=nan", lambda c: c.float("v"), r"^f.cntk:2: v is 'nan'; expected a number$"),
        ("v=yes", lambda c: c.bool("v"), "expected true or false"),
        ("v=1:2:x", lambda c: c.floats("v"), "v is 'x'; expected a number"),
        ("v={1\n2\nx}", lambda c: c.ints("v"), "^f.cntk:3: v is 'x'"),
        ("v=1:2*", lambda c: c.ints("v"), r"v has '2\*'; expected a count after \*"),
        ("v=1*0", lambda c: c.ints("v"), "a count of 1 to 1000000"),
        ("v=1*9999999999999999999", lambda c: c.ints("v"), "a count of 1 to 1000000"),
        ("v={}", lambda c: c.ints("v"), "v is empty"),
        ('v=""', lambda c: c.ints("v"), "v is empty"),
        ("v={}", lambda c: c.array("v", ["a"], "a letter"), "^f.cntk:1: v is empty; expected a letter$"),
        ('v=""', lambda c: c.text("v"), "v is empty"),
        ("v=[a=1]", lambda c: c.text("v"), "v is a block; expected a plain value"),
        ("v=[a=1]", lambda c: c.array("v"), "v is a block; expected an array"),
        ("v=3", lambda c: c.block("v"), r"v is '3'; expected a block \[...\]"),
        ("v=default", lambda c: c.int("v"), "^f.cntk:1: v is set to default"),
        (
            "b=[\nmaxEpoch=3]",
            lambda c: c.block("b").int("maxEpochs"),
            "^f.cntk:1: b.maxEpochs is not.*mean maxEpoch$",
        ),
        ("v=partal", lambda c: c.choice("v", ["partial", "full"]), "expected partial or full; did you mean partial"),
    ],
)
def test_message_names_place_value_and_expectation(text, ask, expected):
    with pytest.raises(ConfigError, match=expected):
        ask(config(text))


def test_quotes_around_an_array_go_before_it_is_taken_apart():
    """As in the tool: its examples write layerSizes = "$Words$:150:200:10000"."""
    c = config('n=300\na="$n$:150*2:7"\nb={"x:y":z}\nc="x:y":z\nd="x"\ne=""')
    assert c.ints("a") == (300, 150, 150, 7)
    assert [c.array(name, []) for name in "bcde"] == [["x:y", "z"], ["x:y", "z"], ["x"], []]
    again = config(render(c))
    assert again.ints("a") == (300, 150, 150, 7)


def test_place_survives_substitution():
    c = config("\nN=abc\nt=[\n size=$N$\n other=1$N$]")
    with pytest.raises(ConfigError, match=r"^f.cntk:2: t.size is 'abc'"):
        c.block("t").int("size")
    with pytest.raises(ConfigError, match=r"^f.cntk:5: t.other is '1abc'"):
        c.block("t").int("other")
    assert c.block("t").where("size") == "f.cntk:4"
    assert c.block("t").where() == "f.cntk:3"


def test_default_counts_as_not_set_and_stops_the_search():
    c = config("n=5\nt=[n=default]")
    assert c.block("t").int("n", 3) == 3
    assert not c.block("t").has("n")
    assert c.has("n")
    assert c.block("nothing", None) is None


def test_text_default_is_converted():
    c = config("")
    assert c.ints("minibatchSize", "256*2:512") == (256, 256, 512)
    assert c.bool("x", "t") is True
    assert c.floats("x", None) is None


def test_choice_ignores_case_and_spells_as_the_consumer_does():
    assert (
        config("readMethod=ROLLINGwindow").choice("readmethod", ["blockRandomize", "rollingWindow"]) == "rollingWindow"
    )


def test_schedule_repeats_its_last_value():
    schedule = config("lr=0.8:3.2*14:0.08").floats("lr")
    assert isinstance(schedule, Schedule)
    assert len(schedule) == 16
    assert [schedule[e] for e in (0, 1, 14, 15, 16, 1000)] == [0.8, 3.2, 3.2, 0.08, 0.08, 0.08]
    assert schedule[-1] == 0.08
    assert list(schedule[:2]) == [0.8, 3.2]


@pytest.mark.parametrize(
    ("text", "elements"),
    [
        ("a:b", ["a", "b"]),
        ("{a,b:c\n d }", ["a", "b", "c", "d"]),
        ("(|a:1|b)", ["a:1", "b"]),
        ("{;a;b*2}", ["a", "b", "b"]),
        ('"x:y"*2:z', ["x:y", "x:y", "z"]),
        ("{1:2}*2", ["{1:2}", "{1:2}"]),
        ("{-1:.5:+2}", ["-1", ".5", "+2"]),
        ("{..\\a:b}", ["..\\a", "b"]),
        ("{\\\\host\\a:b}", ["\\\\host\\a", "b"]),
        ("{$P$:$P$}", ["p", "p"]),
        ("{$1$2}", ["1", "2"]),  # a name would be a reference
        ("W1*H1", ["W1*H1"]),
        ("a::b", ["a", "b"]),
        ('"a*":b', ["a*", "b"]),
    ],
)
def test_arrays(text, elements):
    assert config(f"P=p\nv={text}").array("v") == elements


def test_unknown_names_come_with_the_nearest_known_one():
    c = config("SGD=[\n maxEpochs=3\n minibatchsise=256\n zzz=1]")
    unknown = c.block("SGD").unknown(["maxEpochs", "minibatchSize"])
    assert [(u.name, u.where, u.nearest) for u in unknown] == [
        ("SGD.minibatchsise", "f.cntk:3", "minibatchSize"),
        ("SGD.zzz", "f.cntk:4", None),
    ]
    with pytest.raises(ConfigError, match=r"^f.cntk:3: SGD.minibatchsise is not known here; did you mean minibatchS"):
        c.block("SGD").refuse_unknown(["maxEpochs", "minibatchSize"])
    c.block("SGD").refuse_unknown(["MAXEPOCHS", "minibatchsise", "zzz"])


def test_names_that_a_block_asks_for_are_the_users_own():
    c = config("SGD=[\n Rate=0.5\n learningRatesPerMB=$rate$\n inner=[x=$Depth$]\n depth=2\n other=1]")
    assert [u.name for u in c.block("SGD").unknown(["learningRatesPerMB", "inner"])] == ["SGD.other"]


def test_blocks_lists_own_blocks_only():
    c = config("R=[x=1]\nt=[a=1;features=[dim=1];labels=$R$]")
    assert [(name, block.full_name()) for name, block in c.block("t").blocks()] == [
        ("features", "t.features"),
        ("labels", "t.labels"),
    ]


def test_script_keeps_lines_and_their_places():
    c = config("New=3\nedit=[\nm1=LoadModel($Model$)\nL$New$=F(L2.S, 1) # x\n]\nModel=a.dnn")
    script = c.script("edit")
    assert script.text.split("\n") == ["", "m1=LoadModel(a.dnn)", "L3=F(L2.S, 1)", ""]
    assert [place for _, place in script.span.lines()] == ["f.cntk:2", "f.cntk:3", "f.cntk:4", "f.cntk:5"]


def test_rendered_configuration_reads_the_same_without_references():
    text = (
        'D=a,b\nx="$D$/c"\nt=[n=1:2*3\n p=$x$\n r=$R$\n arr={\n1\n2}\n e=""]\nR=[k=$D$]\nndl=[\nL=F(a,\n b)\nG(x,1)\n]'
    )
    rendered = render(config(text.replace("D=a,b", 'D="a,b"')), origins=False)
    assert "$" not in rendered
    again = config(rendered)
    assert again.text("x") == "a,b/c"
    t = again.block("t")
    assert (t.ints("n"), t.text("p"), t.block("r").text("k"), t.ints("arr")) == ((1, 2, 2, 2), "a,b/c", "a,b", (1, 2))
    assert again.script("ndl").text.split() == ["L=F(a,", "b)", "G(x,1)"]
    assert render(again, origins=False) == rendered
    assert "n=1:2*3  # f.cntk:3" in render(config(text))


def test_render_leaves_what_only_the_users_of_a_block_can_follow():
    rendered = render(config("reader=[scp=$Set$]\ntrain=[Set=tr]"))
    assert config(rendered).block("train").block("reader").text("scp") == "tr"


@pytest.mark.parametrize(
    "text", ["a=[\n b=1\n a=$a$\n]", "a=[\n x=$b$\n]\nb=[y=$a$]", "a=[\n b=$a$; c=$a$; d=$a$; e=$a$\n]"]
)
def test_a_block_that_holds_itself_is_one_fault_and_no_endless_row_of_blocks(text):
    config = Config.from_text(text, "f.cntk")
    with pytest.raises(ConfigError, match=r"^f.cntk:[234]: block [aby] contains itself: \S+; expected no cycle$"):
        render(config)


def test_a_block_may_be_looked_for_from_within_itself():
    config = Config.from_text("a=[b=1;c=[d=2]]", "f.cntk")
    assert config.block("a").block("c").block("a").int("b") == 1
