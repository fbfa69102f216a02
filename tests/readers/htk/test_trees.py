"""HHEd's trees and scripts: by hand, round trips, damage."""

import fnmatch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from readers.errors import ArgonautError, FormatError, GraphError
from readers.htk.edit_script import Clustering, EditScript, read_edit_script, write_edit_script
from readers.htk.trees import DecisionTree, DecisionTrees, Question, read_trees, split_triphone, write_trees

TREES = """ QS  'L_Nasal' { "m-*","n-*" }
 QS "R_Stop" { *+p , *+t }

aa[2]
{
   0            'L_Nasal'   -1     "aa_s2_1"
  -1             'R_Stop'  "aa_s2_2"   -2
  -2             'L_Nasal'  "aa_s2_3"   "aa_s2_4"
}

aa[3]
   "aa_s3_1"
"""


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "trees"
    path.write_text(TREES)
    return path


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("l-c+r", ("l", "c", "r")),
        ("c+r", (None, "c", "r")),
        ("l-c", ("l", "c", None)),
        ("c", (None, "c", None)),
        ("h#-a+b+", ("h#", "a", "b+")),
        ("-a", (None, "-a", None)),
        ("a+", (None, "a+", None)),
    ],
)
def test_split_triphone(name, parts):
    assert split_triphone(name) == parts


@pytest.mark.parametrize(
    ("model", "state"),
    [("m-aa+p", "aa_s2_1"), ("k-aa+z", "aa_s2_2"), ("k-aa+t", "aa_s2_3"), ("aa", "aa_s2_2"), ("n-aa", "aa_s2_1")],
)
def test_triphones_seen_or_not_find_their_states(path, model, state):
    trees = read_trees(path)
    assert trees.tied_state(model, 2) == state
    assert trees.synthesise(model) == (state, "aa_s3_1")


def test_phone_without_trees_is_named(path):
    trees = read_trees(path)
    with pytest.raises(GraphError, match="decision trees: none for 'zh', which model 'a-zh' needs"):
        trees.synthesise("a-zh")
    with pytest.raises(GraphError, match=r"decision trees: none for aa\[4\], which model 'aa' needs"):
        trees.tied_state("aa", 4)


def test_gap_among_the_states_of_a_phone_is_named():
    with pytest.raises(GraphError, match=r"those of 'a' are of states \[2, 4\]; expected 2, 3"):
        DecisionTrees({}, {("a", 2): DecisionTree((), "x"), ("a", 4): DecisionTree((), "y")}).synthesise("a")


@given(st.text("ab-+.*?", max_size=6), st.text("ab-+.", max_size=6))
def test_patterns_match_as_file_names_do(pattern, name):
    assert Question("q", (pattern,))(name) == fnmatch.fnmatchcase(name, pattern)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("'R_Stop'  \"", "'Q'  \"", ":7: question 'Q' in aa.2.; expected a question that a QS line defines"),
        ("   -2\n", "   -3\n", ":7: node -3 of aa.2. is not there; expected a tree"),
        ("   -2\n", "   -1\n", ":7: node -1 of aa.2. is reached twice"),
        ("   -2\n", '   "x"\n', ":4: 1 nodes of aa.2. that no answers reach"),
        ("  -2     ", "  -1     ", ":8: node -1 of aa.2. is defined twice"),
        ("   0     ", "   -5     ", ":4: tree aa.2. without a root; expected node 0 first"),
        ("   0     ", "   x     ", ":6: 'x'; expected a node's number"),
        ("aa[3]", "aa[2]", ":11: a second tree for aa.2."),
        ("aa[3]", "aa", ":11: 'aa'; expected a tree's phone.state."),
        ("aa[3]", "aa[1]", ":11: 'aa.1.'; expected a tree's phone.state."),
        ('"aa_s3_1"', "aa_s3_1", ":12: 'aa_s3_1'; expected { or the name of a leaf in quotes"),
        ('"aa_s2_4"\n', "", ":8: '}'; expected a node's number or the name of a leaf"),
        ("{ *+p , *+t }", "{ }", "question 'R_Stop' without patterns"),
        ('"R_Stop"', '"L_Nasal"', ":2: question 'L_Nasal' is defined twice"),
        ("}\n\naa[3]\n", "", "expected a node's number"),
    ],
)
def test_faults_are_named_with_file_and_line(path, old, new, message):
    assert old in TREES
    path.write_text(TREES.replace(old, new, 1))
    with pytest.raises(FormatError, match=message) as fault:
        read_trees(path)
    assert str(fault.value).startswith(f"{path}:")


@settings(max_examples=80, deadline=None)
@given(st.data())
def test_damaged_files_give_one_clear_line_or_trees(tmp_path_factory, data):
    begin = data.draw(st.integers(0, len(TREES)))
    end = data.draw(st.integers(begin, min(len(TREES), begin + 12)))
    text = data.draw(st.text("QS{}\"',-012[]ax \n", max_size=6))
    path = tmp_path_factory.mktemp("trees") / "damaged"
    path.write_text(TREES[:begin] + text + TREES[end:])
    message = f"{path}:1"
    try:
        read_trees(path)
    except ArgonautError as fault:
        message = str(fault)
    assert message.startswith(f"{path}:")
    assert "\n" not in message


names = st.text(st.characters(codec="ascii", min_codepoint=33, max_codepoint=126), min_size=1, max_size=6)


@st.composite
def forests(draw):
    questions = {
        name: Question(name, tuple(draw(st.lists(names, min_size=1, max_size=3))))
        for name in draw(st.lists(names, min_size=1, max_size=4, unique=True))
    }
    trees = {}
    for phone in draw(st.lists(st.text("abz", min_size=1, max_size=2), min_size=1, max_size=3, unique=True)):
        size = draw(st.integers(0, 6))
        open_ends, nodes = [], []
        for index in range(size):  # every new node hangs on an open end of those before
            if open_ends:
                parent, side = open_ends.pop(draw(st.integers(0, len(open_ends) - 1)))
                nodes[parent][side] = index
            nodes.append([draw(st.sampled_from(sorted(questions))), None, None])
            open_ends += [(index, 1), (index, 2)]
        for parent, side in open_ends:
            nodes[parent][side] = draw(names)
        trees[phone, 2] = DecisionTree(tuple(map(tuple, nodes))) if size else DecisionTree((), draw(names))
    return DecisionTrees(questions, trees)


@settings(max_examples=40, deadline=None)
@given(forests())
def test_what_is_written_reads_back(tmp_path_factory, trees):
    path = tmp_path_factory.mktemp("trees") / "file"
    write_trees(path, trees)
    assert read_trees(path) == trees


SCRIPT = """# clustering
RO 100.0 "stats"
TR 0
QS "L_Nasal" { *-m+*, "n-*" }
TR 2
TB 350.5 "ST_aa_2_" {("aa","*-aa+*","aa+*","*-aa").state[2]}
TB 350 ST_ow_4_ { (*-ow+*).state[4] }
TI "T_aa" {(*-aa+*,aa).transP}
AU "fulllist"
CO "tiedlist"
ST "trees"
"""


def test_edit_script_gives_questions_and_clusterings(tmp_path):
    (tmp_path / "tree.hed").write_text(SCRIPT)
    script = read_edit_script(tmp_path / "tree.hed")
    assert script.questions == {"L_Nasal": Question("L_Nasal", ("*-m+*", "n-*"))}
    assert script.clusterings == [Clustering(350.5, "ST_aa_2_", "aa", 2), Clustering(350, "ST_ow_4_", "ow", 4)]
    assert script.others[0] == ("RO", ("100.0", "stats"))
    assert ("TI", ("T_aa", "{(*-aa+*,aa).transP}")) in script.others
    write_edit_script(tmp_path / "again.hed", script)
    assert read_edit_script(tmp_path / "again.hed") == script


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("XX 1\n", ":1: command 'XX'; expected QS, TB"),
        ("TB x\n", ":1: 'x'; expected TB's threshold"),
        ("TB 1 p {(*-a+*).transP}\n", "expected one state of one phone"),
        ("TB 1 p {(*-a+*,*-b+*).state[2]}\n", "expected one state of one phone"),
        ("TB 1 p {(*-a+*).state[2]\n", "expected } at the end of the items"),
        ("AU\n", ":1: AU with 0 arguments; expected 1 to 1 arguments"),
        ("QS 'a' *-b+*\n", ":1: .*expected {"),
    ],
)
def test_edit_script_faults(tmp_path, text, message):
    (tmp_path / "tree.hed").write_text(text)
    with pytest.raises(FormatError, match=message):
        read_edit_script(tmp_path / "tree.hed")


def test_edit_script_default_is_empty():
    assert EditScript() == EditScript({}, [], [])
