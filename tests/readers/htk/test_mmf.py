"""HTK model definitions: a file laid out by hand, round trips, damage."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from readers.common.text import canonical
from readers.errors import ArgonautError, FormatError
from readers.htk.hmm_list import read_hmm_list, write_hmm_list
from readers.htk.hmm_set import (
    GaussianComponent,
    Hmm,
    HmmOptions,
    HmmSet,
    HmmState,
    MacroVector,
    StreamMixture,
    diagonal_component,
    left_to_right,
    single_gaussian_state,
)
from readers.htk.mmf import read_mmf
from readers.htk.mmf_writer import write_mmf

DONOR = """~o
<STREAMINFO> 1 2
<VecSize> 2<NULLD><MFCC_0><DIAGC>
~v "varFloor1"
<Variance> 2
 0.01 0.02
~u 'mean one' <MEAN> 2 1.0 -2e-1
~m "mix"
<Mean> 2
 3 4
<Variance> 2
 1 1
<GCONST> 3.67
~p "pool" <STREAM> 1 <NUMMIXES> 2 <MIXTURE> 1 0.4 ~m "mix" <MIXTURE> 2 0.6 <MEAN> 2 0 0 <VARIANCE> 2 1 1
~s "sil_s3"
<NUMMIXES> 2
<MIXTURE> 1 2.5e-1
~u "mean one"
~v "varFloor1"
<MIXTURE> 2 0.75
~m "mix"
~t "T_sp"
<TRANSP> 3
 0 0.3 0.7
 0 0.9 0.1
 0 0 0
~h "sil"
<BEGINHMM>
<NUMSTATES> 5
<STATE> 2 ~p "pool"
<STATE> 3
~s "sil_s3"
<STATE> 4
<MEAN> 2
 1 1
<VARIANCE> 2
 2 2
<TRANSP> 5
 0 1 0 0 0
 0 0.5 0.3 0.2 0
 0 0 0.5 0.5 0
 0 0.1 0 0.6 0.3
 0 0 0 0 0
<ENDHMM>
~h "sp"
<BeginHMM>
<NumStates> 3
<State> 2
~s "sil_s3"
~t "T_sp"
<EndHMM>
"""


@pytest.fixture
def donor(tmp_path):
    path = tmp_path / "donor.mmf"
    path.write_text(DONOR)
    return path


def test_every_part_of_a_donor_is_read(donor):
    hmm_set = read_mmf(donor)
    assert hmm_set.options == HmmOptions((2,), 2, "MFCC_0", "NULLD", "DIAGC")
    sil, sp = hmm_set.hmms["sil"], hmm_set.hmms["sp"]
    assert sp.states[0] is sil.states[1]
    assert [hmm_set.state_name(sil, place) for place in range(3)] == ["sil_s2", "sil_s3", "sil_s4"]
    assert hmm_set.state_name(sp, 0) == "sil_s3"
    assert sp.is_tee
    assert not sil.is_tee
    assert sp.transitions.matrix.tolist() == [[0, 0.3, 0.7], [0, 0.9, 0.1], [0, 0, 0]]
    middle = sil.states[1].streams[0]
    assert middle.weights == (0.25, 0.75)
    assert middle.components[0].mean.values.tolist() == [1.0, -0.2]
    assert middle.components[0].variance is hmm_set.macros["v"]["varFloor1"]
    assert middle.components[1] is hmm_set.macros["m"]["mix"]
    assert middle.components[1].gconst == 3.67
    assert sil.states[0].streams[0] is hmm_set.macros["p"]["pool"]
    assert sil.where == f"{donor}:{DONOR.split('~h').pop(0).count(chr(10)) + 1}"


def test_parts_may_stand_in_a_file_read_before(tmp_path):
    head, tail = DONOR.split('~h "sil"')
    (tmp_path / "macros").write_text(head)
    (tmp_path / "models").write_text('~h "sil"' + tail)
    assert list(read_mmf([tmp_path / "macros", tmp_path / "models"]).hmms) == ["sil", "sp"]
    with pytest.raises(FormatError, match=r"models:4: ~p 'pool' is not defined; expected the stream defined before"):
        read_mmf(tmp_path / "models")


def test_file_without_a_name_is_a_model_named_like_it(tmp_path):
    (tmp_path / "aa").write_text(
        "<BEGINHMM><NUMSTATES> 3 <STATE> 2 <MEAN> 1 0 <VARIANCE> 1 1 <TRANSP> 3 0 1 0 0 0.5 0.5 0 0 0 <ENDHMM>"
    )
    assert list(read_mmf(tmp_path / "aa").hmms) == ["aa"]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("<VecSize> 2<", "<VecSize> 3<", r":3: streams of \(2,\) values; expected 3 in all"),
        ("<VecSize> 2<", "<VecSize> 2<QUUX><", "option <QUUX>; expected <STREAMINFO>"),
        ("<NULLD>", "<GAMMAD>", "option <GAMMAD>, which is not supported; expected <NULLD>"),
        ("<DIAGC>", "<FULLC>", "option <FULLC>, which is not supported; expected <DIAGC>"),
        ("<Mean> 2\n 3 4", "<Mean> 3\n 3 4", r":11: <MEAN>: '<VARIANCE>' as value 3; expected 3 numbers"),
        ("<Mean> 2\n 3 4", "<Mean> 2\n 3 nan", r":10: <MEAN>: 'nan' as value 2; expected 2 numbers"),
        ("<Mean> 2\n 3 4", "<Mean> 999999999999\n 3 4", "<MEAN>: '<VARIANCE>' as value 3; expected 999999999999"),
        ("<Mean> 2\n 3 4", "<Mean> 1\n 3", "a mean of 1 values with a variance of 2; expected as many"),
        ("<Variance> 2\n 1 1", "<Variance> 2\n 1 0", "variance 0; expected variances above 0"),
        ("2.5e-1", "0.5", "weights that sum to 1.2500; expected weights of at least 0 that sum to 1"),
        ("<MIXTURE> 2 0.75", "<MIXTURE> 1 0.75", "component 1 is defined twice; expected each component once"),
        ("<MIXTURE> 2 0.75", "<MIXTURE> 3 0.75", "component '3'; expected a whole number, 1 to 2"),
        ("<NUMSTATES> 5", "<NUMSTATES> 4", "state '4'; expected a whole number, 2 to 3"),
        ("<NUMSTATES> 5", "<NUMSTATES> 6", "'<TRANSP>', but no state 5 of model 'sil'; expected <STATE>"),
        (
            "<NUMSTATES> 5",
            "<NUMSTATES> 1000000000",
            "states '1000000000'; expected a whole number, 3 to 1000",
        ),
        ("<STATE> 4\n", "<STATE> 3\n", "state 3 of model 'sil' is defined twice"),
        (" 0 0 0.5 0.5 0\n", " 0 0 0.5 0.4 0\n", "transitions from state 3 sum to 0.9000; expected 1"),
        (" 0 0.9 0.1\n 0 0 0\n", " 0 0.9 0.1\n 0 0 1\n", "transitions out of the last state or into the first"),
        (" 0 0.9 0.1\n", " 0 1.5 -0.5\n", "a transition probability below 0 or above 1; expected 0 to 1"),
        ('<NumStates> 3\n<State> 2\n~s "sil_s3"', '<NumStates> 3\n<State> 2\n~s "q"', "~s 'q' is not defined"),
        (
            '~s "sil_s3"\n~t "T_sp"',
            '~s "sil_s3"\n<State> 3 ~s "sil_s3" ~t "T_sp"',
            "state '3'; expected a whole number, 2 to 2",
        ),
        ('~h "sp"', '~h "sil"', "~h 'sil' is defined twice; expected each name once"),
        ('~h "sp"', "~h <BEGINHMM>", "'<BEGINHMM>' after ~h; expected the name of a model"),
        ('~h "sp"', "~j", "'~j'; expected a definition: one of ~o ~h ~s"),
        ("<EndHMM>\n", "", r"the end of the file; expected <ENDHMM>"),
        ("<NUMMIXES> 2\n", "<NUMMIXES> 2 <TMIX> foo", "<TMIX> .a tied mixture., which is not supported"),
        ('~t "T_sp"\n<TRANSP> 3', '~t "T_sp"\n<DURATION> 3', "'<DURATION>'; expected <TRANSP>"),
        ("<STATE> 4\n<MEAN> 2\n 1 1", "<STATE> 4\n<MEAN> 3\n 1 1 1", "a mean of 3 values with a variance of 2"),
    ],
)
def test_faults_are_named_with_file_and_line(donor, old, new, message):
    assert DONOR.count(old) >= 1
    donor.write_text(DONOR.replace(old, new, 1))
    with pytest.raises(FormatError, match=message) as fault:
        read_mmf(donor)
    assert str(fault.value).startswith(f"{donor}:")
    assert "\n" not in str(fault.value)


def test_sizes_of_states_and_transitions_must_agree(donor):
    donor.write_text(DONOR.replace("<NumStates> 3\n", "<NumStates> 4\n<State> 3 ~s 'sil_s3'\n"))
    with pytest.raises(FormatError, match="transitions of 3 states in model 'sp' of 4; expected as many"):
        read_mmf(donor)


def test_binary_file_is_refused(tmp_path):
    (tmp_path / "binary").write_text(":\x05")
    with pytest.raises(FormatError, match="a binary file; expected text"):
        read_mmf(tmp_path / "binary")


@settings(max_examples=80, deadline=None)
@given(st.data())
def test_damaged_files_give_one_clear_line_or_a_set(tmp_path_factory, data):
    words = DONOR.split(" ")
    at = data.draw(st.integers(0, len(words) - 1))
    action = data.draw(st.sampled_from(["drop", "swap", "text", "cut"]))
    if action == "drop":
        del words[at]
    elif action == "swap":
        other = data.draw(st.integers(0, len(words) - 1))
        words[at], words[other] = words[other], words[at]
    elif action == "text":
        words[at] = data.draw(st.text(alphabet="<>~\"'hs0123456789.-e \n\\STATE", max_size=12))
    else:
        words = words[:at]
    path = tmp_path_factory.mktemp("mmf") / "damaged"
    path.write_text(" ".join(words))
    message = f"{path}:1"
    try:
        read_mmf(path)
    except ArgonautError as fault:
        message = str(fault)
    assert message.startswith(f"{path}:")
    assert "\n" not in message


names = (
    st.text(st.characters(codec="utf-8", exclude_categories=("Cs", "Cc", "Zl", "Zp")), min_size=1, max_size=8)
    .map(canonical)
    .filter(bool)
)
values = st.floats(-1e6, 1e6, width=32)
positive = st.floats(2**-20, 1e6, width=32)


@st.composite
def hmm_sets(draw):
    """A set as a recipe makes it: tied states and transitions, and models of their own."""
    widths = draw(st.sampled_from([(), (3,), (2, 1)]))
    hmm_set = HmmSet(HmmOptions(widths, sum(widths) or None, *draw(st.sampled_from([("MFCC_D_A_0",), (None,)]))))
    widths = widths or (2,)

    def vector(of, size, macro=None):
        return MacroVector(np.array(draw(st.lists(of, min_size=size, max_size=size))), macro)

    def component(size, macro=None):
        return GaussianComponent(vector(values, size), vector(positive, size), draw(st.none() | values), macro)

    def stream(size, macro=None):
        count = draw(st.integers(1, 3))
        return StreamMixture((1 / count,) * count, tuple(component(size) for _ in range(count)), macro)

    def state(macro=None):
        return HmmState(tuple(stream(size) for size in widths), None, macro)

    for name in draw(st.lists(names, max_size=3, unique=True)):
        hmm_set.macros["s"][name] = state(name)
    for name in draw(st.lists(names, max_size=2, unique=True)):
        hmm_set.macros["t"][name] = left_to_right([0.5] * draw(st.integers(1, 3)), name, skip=0.25)
    for name in draw(st.lists(names, min_size=1, max_size=3, unique=True)):
        shared = list(hmm_set.macros["t"].values())
        transitions = draw(st.sampled_from(shared)) if shared and draw(st.booleans()) else left_to_right([0.75, 0.5])
        states = list(hmm_set.macros["s"].values())
        own = [
            draw(st.sampled_from(states)) if states and draw(st.booleans()) else state()
            for _ in range(len(transitions.matrix) - 2)
        ]
        hmm_set.macros["h"][name] = Hmm(name, tuple(own), transitions)
    return hmm_set


def facts(part):
    """A part as comparable values, shared parts by name as well."""
    if isinstance(part, np.ndarray):
        return part.astype(np.float32).tolist()
    if isinstance(part, tuple):
        return [facts(p) for p in part]
    if hasattr(part, "__dataclass_fields__") and not isinstance(part, HmmOptions):
        return {name: facts(value) for name, value in vars(part).items() if name != "where"}
    return float(np.float32(part)) if isinstance(part, float) else part


@settings(max_examples=40, deadline=None)
@given(hmm_sets())
def test_what_is_written_reads_back(tmp_path_factory, hmm_set):
    path = tmp_path_factory.mktemp("mmf") / "set"
    write_mmf(path, hmm_set)
    again = read_mmf(path)
    assert again.options == hmm_set.options
    for kind, parts in hmm_set.macros.items():
        assert {n: facts(p) for n, p in again.macros[kind].items()} == {n: facts(p) for n, p in parts.items()}
    for name, hmm in again.hmms.items():
        for old, new in zip(hmm_set.hmms[name].states, hmm.states):
            assert old.macro is None or again.macros["s"][old.macro] is new


def test_a_donor_survives_being_written(donor, tmp_path):
    write_mmf(tmp_path / "one", read_mmf(donor))
    write_mmf(tmp_path / "two", read_mmf(tmp_path / "one"))
    assert (tmp_path / "one").read_text() == (tmp_path / "two").read_text()


def test_writing_refuses_a_shared_part_that_is_not_in_the_set(tmp_path):
    hmm_set = HmmSet()
    state = single_gaussian_state([0.0], [1.0], "a_s2_1")
    hmm_set.macros["h"]["a"] = Hmm("a", (state,), left_to_right([0.5]))
    with pytest.raises(FormatError, match="~s 'a_s2_1' is not in the set"):
        write_mmf(tmp_path / "set", hmm_set)
    assert not (tmp_path / "set").exists()


def test_gconst_of_a_gaussian():
    # ln((2 pi)^2 * 4 * 9)
    assert diagonal_component([0, 0], [4, 9]).gconst == pytest.approx(3.6757541 + 3.5835189)


def test_hmm_list_round_trip(tmp_path):
    names = {"sil": "sil", "sil-aa+b": "p-aa+b", 'q"-r': "sil"}
    write_hmm_list(tmp_path / "list", names)
    assert read_hmm_list(tmp_path / "list") == names


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a b c\n", ":1: 'a b c'; expected a logical and a physical model name"),
        ("a\nb\na b\n", ":3: 'a' is repeated; expected each name once"),
        ("\n\n", ": no models; expected lines"),
    ],
)
def test_hmm_list_faults(tmp_path, text, message):
    (tmp_path / "list").write_text(text)
    with pytest.raises(FormatError, match=message):
        read_hmm_list(tmp_path / "list")


def test_values_may_stand_on_any_lines(tmp_path):
    text = "<BEGINHMM><NUMSTATES> 3 <STATE> 2 <MEAN> 30 {} <VARIANCE> 30\n{}\n<TRANSP> 3 0 1 0 0 0.5 0.5 0 0 0 <ENDHMM>"
    numbers = [str(i / 8) for i in range(1, 31)]
    (tmp_path / "a").write_text(text.format("\n".join(numbers), " ".join(numbers)))
    component = read_mmf(tmp_path / "a").hmms["a"].states[0].streams[0].components[0]
    assert component.mean.values.tolist() == component.variance.values.tolist() == [float(n) for n in numbers]
    (tmp_path / "b").write_text(text.format("\n".join(numbers), " ".join([*numbers, "7.0"])))
    with pytest.raises(FormatError, match=r"b:31: '7.0'; expected <TRANSP>"):
        read_mmf(tmp_path / "b")
