"""SequenceWithSoftmax: lattices, layouts, readers and options that do not fit are refused with one line."""

from dataclasses import replace

import numpy as np
import pytest

from acoustic.engine.engine import Engine
from acoustic.network.network import Network
from readers.errors import ModelError, ShapeError
from readers.minibatches.sequence_layout import SequenceLayout
from readers.minibatches.supervision import PlacedSupervision
from tests.acoustic.nodes.lattices import SENONES, layout_with, random_lattice
from tests.acoustic.nodes.test_sequence_criterion import make_data, make_layout, make_network


def forward(layout, network=None):
    network = network or make_network()
    Engine(network, ["J"]).forward(make_data(layout), training=True, layout=layout)


def changed(**arrays):
    """A layout of one utterance of 6 frames, whose lattice has other arrays."""
    lattice = random_lattice(np.random.default_rng(1), 6)
    return layout_with([[replace(lattice, **{name: change(lattice) for name, change in arrays.items()})]])


def with_first(name, number):
    def change(lattice):
        array = getattr(lattice, name).copy()
        array[np.flatnonzero(lattice.num_arc_frames)[0] if name in ("senone", "first_frame") else 0] = number
        return array

    return change


FAULTS = [
    ({"senone": with_first("senone", SENONES)}, r"arc \d+: its senone; expected one of the 5 outputs of the network"),
    ({"senone": with_first("senone", -1)}, r"arc \d+: its senone"),
    ({"end_node": with_first("end_node", 99)}, r"arc 0: its nodes; expected two of \d+ nodes in topological order"),
    ({"end_node": with_first("end_node", 0)}, r"arc 0: its nodes"),
    ({"start_node": with_first("start_node", -1)}, r"arc 0: its nodes"),
    ({"first_frame": with_first("first_frame", 3)}, r"arc \d+: its frames; expected paths of 6 frames"),
    ({"num_arc_frames": lambda lattice: lattice.num_arc_frames * 2}, r"arc \d+: its frames"),
    ({"num_nodes": lambda lattice: lattice.num_nodes + 1}, r"arc -1: its frames"),
    ({"silence": lambda lattice: lattice.silence[:1]}, r"arc \d+: its phone; expected one of 1 phones"),
    ({"reference_senones": with_first("reference_senones", 7)}, r"frame 0: its reference; expected one of 5 senones"),
    ({"reference_senones": lambda lattice: lattice.reference_senones[1:]}, r"frame -1: its reference"),
    ({"reference_phones": lambda lattice: lattice.reference_phones[1:]}, r"frame -1: its reference"),
    ({"num_nodes": lambda lattice: 0}, r"arc -1: its nodes; expected two of 0 nodes"),
    ({"reference_phones": with_first("reference_phones", -1)}, r"frame 0: its reference"),
    ({"lm_score": lambda lattice: np.full_like(lattice.lm_score, -np.inf)}, r"no path has a probability above 0"),
]


@pytest.mark.parametrize(("arrays", "message"), FAULTS, ids=lambda one: "" if isinstance(one, dict) else one[:20])
def test_lattices_that_do_not_fit_are_refused(arrays, message):
    with pytest.raises(ModelError, match=rf"node 'J' \(SequenceWithSoftmax\): lattice of utt.*{message}"):
        forward(changed(**arrays))


def test_minibatches_without_lattices_are_refused():
    layout = make_layout()
    with pytest.raises(ModelError, match=r"nothing to compare the utterances with; expected lattices=\[denLatTocFile="):
        forward(replace(layout, supervisions=()))
    with pytest.raises(ModelError, match="independent frames; expected whole utterances, with lattices="):
        Engine(make_network(), ["J"]).forward(make_data(layout), training=True)


def test_supervisions_that_do_not_fit_the_layout_are_refused():
    layout = layout_with([[random_lattice(np.random.default_rng(1), 6)], [random_lattice(np.random.default_rng(1), 4)]])
    (first, second) = layout.supervisions
    for supervisions, message in (
        ([first._replace(num_frames=5)], "has 6 frames; expected 5, as the utterance"),
        ([first._replace(slot=2)], "is in slot 2, steps 0 to 5; expected a place of the layout"),
        ([first._replace(step=1)], "is in slot 0, steps 1 to 6; expected a place of the layout"),
        ([second._replace(step=2)], "covers columns without a frame"),
        ([first, second._replace(slot=0, step=1)], "covers columns of another one; expected one for each frame"),
    ):
        with pytest.raises(ModelError, match=message):
            forward(replace(layout, supervisions=tuple(supervisions)))


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("hSmoothingWeight", "1.5", "hSmoothingWeight is 1.5; expected 0 to 1"),
        ("frameDropThresh", "-1", "frameDropThresh is -1; expected 0 to 1"),
        ("seqGammarAMF", "0", "expected above 0"),
        ("seqGammarLMF", "nan", "at least 0"),
        ("seqGammarWordPen", "inf", "a finite number"),
        ("seqGammarBMMIFactor", "-0.1", "at least 0"),
        ("doReferenceAlign", "true", "doReferenceAlign is true; expected false: the reference is the alignment"),
        ("sequenceCriterion", "mle", "expected one of mmi, mpe, smbr"),
        ("silenceFrames", "no", "expected one of oneClass, ignored, counted"),
    ],
)
def test_options_out_of_range_are_refused(name, value, expected):
    with pytest.raises(ModelError, match=expected):
        make_network(**{name: value})


def test_bad_shapes_are_refused():
    network = Network(threads=1)
    for name, rows in (("a", 3), ("b", 4)):
        network.add("Input", name, rows=rows)
    for operands in ("aab", "aba", "baa"):
        with pytest.raises(ShapeError, match="expected equal shapes"):
            network.add("SEWithSM", "J", *operands)


def test_context_is_not_supervised():
    """Columns behind the kept steps belong to the next minibatch."""
    layout = layout_with([[random_lattice(np.random.default_rng(1), 6)]])
    none, over = np.zeros((2, 1), bool), np.ones((2, 1), bool)
    marks = [np.concatenate(pair) for pair in ((layout.starts, none), (layout.ends, none), (layout.gaps, over))]
    longer = SequenceLayout(1, 8, *marks, num_context=2, supervisions=layout.supervisions)
    forward(longer)
    late = PlacedSupervision(0, 1, 6, layout.supervisions[0].supervision)
    with pytest.raises(ModelError, match="expected a place of the layout"):
        forward(replace(longer, supervisions=(late,)))
