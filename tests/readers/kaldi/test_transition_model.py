"""Kaldi's transition models: what each transition-id stands for."""

import numpy as np
import pytest

from readers.errors import FormatError
from readers.kaldi.objects import KaldiObjects
from readers.kaldi.transition_model import NO_PDF, read_transition_model
from tests.readers.kaldi.models import Writer, put_transitions


def read(content):
    return read_transition_model(KaldiObjects("final.mdl", content))


@pytest.mark.parametrize("binary", [True, False])
@pytest.mark.parametrize("old", [True, False])
def test_transition_ids_number_the_transitions_of_all_states(binary, old):
    model = read(put_transitions(Writer(binary), old=old).content)
    assert model.phones.tolist() == [0, 1, 1, 2, 2, 3, 3]
    assert model.states.tolist() == [0] * 7
    assert model.is_self_loop.tolist() == [False, True, False, True, False, True, False]
    # The self-loop comes first, and in the new form it has the second pdf of its phone.
    assert model.pdfs.tolist() == [NO_PDF, *([0, 0, 1, 1, 2, 2] if old else [1, 0, 3, 2, 5, 4])]
    assert (model.num_transition_ids, model.num_pdfs) == (6, 3 if old else 6)
    np.testing.assert_array_equal(model.log_probs, [0, *[-0.5] * 6])
    first, final = model.topologies[2]
    assert (first.forward_class, first.self_loop_class) == (0, 0 if old else 1)
    assert (first.transitions, final.transitions) == (((0, 0.5), (1, 0.5)), ())


TEXT = put_transitions(Writer(False)).content


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (b"<TransitionModel>", b"<DiagGMM>", "'<DiagGMM>'; expected <TransitionModel>"),
        (b"<Topology>", b"<Triples>", "'<Triples>'; expected <Topology>"),
        (b"<State> 0", b"<State> 7", "7; expected 0 to 0"),
        (b"<Transition> 1", b"<Transition> 2", "a transition of phone 1 to a state that is missing; expected 0 to 1"),
        (b"<Transition> 1", b"<Transfer> 1", "'<Transfer>'; expected <Transition> or </State>"),
        (b"<ForPhones>\n1", b"<ForPhones>\n0", "0; expected 1 to"),
        (b"<Tuples> 3", b"<Tuples> 999999", "999999 transition-states; expected no more than the file has bytes"),
        (b"<Tuples> 3 1 0", b"<Tuples> 3 9 0", "state 0 of phone 9; expected a state of the topologies"),
        (b"<Tuples> 3 1 0", b"<Tuples> 3 1 2", "state 2 of phone 1; expected a state of the topologies"),
        (b"<Tuples> 3 1 0 0", b"<Tuples> 3 1 0 -2", "-2; expected 0 to"),
        (b"</Tuples>", b"</Triples>", "'</Triples>'; expected </Tuples>"),
        (b"[ 0.0", b"[", "6 probabilities; expected 7, one for each transition-id and 0"),
        (b"-0.5 -0.5", b"-0.5 800.0", "a probability of exp(800); expected logarithms of probabilities, at most 0"),
        (b"</TransitionModel>", b"", "the end of the file; expected a token"),
    ],
)
def test_damaged_models_are_refused(old, new, message):
    assert old in TEXT
    with pytest.raises(FormatError) as fault:
        read(TEXT.replace(old, new, 1))
    text = str(fault.value)
    assert text.startswith("final.mdl:")
    assert message in text
    assert "\n" not in text


def test_a_phone_needs_a_topology():
    content = put_transitions(Writer(True)).content
    damaged = content.replace(b"\4\4\0\0\0\xff\xff\xff\xff\0\0\0\0", b"\4\4\0\0\0\xff\xff\xff\xff\x09\0\0\0", 1)
    assert damaged != content
    with pytest.raises(FormatError, match="phone 1 without a topology; expected the number of one for each phone"):
        read(damaged)
