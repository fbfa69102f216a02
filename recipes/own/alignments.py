"""Turns an alignment of another tool into that of a flat start: states of monophones, with the silence `sil`."""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import numpy as np

from readers.common.files import write_lines
from readers.common.report import RunReport
from readers.corpora.script_file import keys_of_names
from readers.errors import FormatError
from readers.htk.dictionary import Pronunciation
from readers.htk.frame_labels import frame_bounds
from readers.htk.mlf import Label, read_mlf, write_mlf
from readers.htk.scp import frame_counts
from readers.htk.trees import split_triphone
from readers.htk.units import TICKS_PER_FRAME
from readers.tables.state_names import model_of_state

Span = tuple[tuple[str, int], int, int]  # (phone, state), first frame, end

SILENCE = "sil"
STATES = (2, 3, 4)  # of a phone whose states the alignment does not name, as HTK counts them
MAX_DIFFERENCE = 5  # frames between the ends of an alignment and of its features, which depend on the window


def write_alignment(
    path: Path, entries: Collection[Pronunciation], silences: Sequence[str], features: Path, out: Path
) -> RunReport:
    """Write states.mlf and states.list, of the utterances of a feature list that the alignment has.

    The other arguments, and what is raised, are those of `read_alignment`.
    """
    aligned, report = read_alignment(path, entries, silences, frame_counts(features))
    labels = {
        f"*/{name}.lab": [
            Label(first * TICKS_PER_FRAME, end * TICKS_PER_FRAME, name_of(state)) for state, first, end in spans
        ]
        for name, spans in aligned.items()
    }
    write_mlf(out / "states.mlf", labels.items())
    write_lines(out / "states.list", map(name_of, sorted({state for spans in aligned.values() for state, *_ in spans})))
    return report


def write_phones(alignment: Path, labels: Path, tokens: Path, silence: str, blank: str) -> None:
    """Write the phones of an alignment of states, with the blank in place of silence, and the list of both."""
    phones: dict[str, list[Label]] = {}
    states = read_mlf(alignment)
    for name in states:
        spans: list[Label] = []
        before = 0
        for label in states[name]:
            phone, state = model_of_state(label.name)
            token = blank if phone == silence else phone
            if spans and spans[-1].name == token and (token == blank or state > before):
                spans[-1] = spans[-1]._replace(end=label.end)
            else:
                spans.append(Label(label.start, label.end, token))
            before = state
        phones[name] = spans
    seen = {label.name for spans in phones.values() for label in spans}
    write_lines(tokens, [*sorted(seen - {blank}), blank])
    write_mlf(labels, ((f"*/{name}.lab", spans) for name, spans in phones.items()))


def read_alignment(
    path: Path, entries: Collection[Pronunciation], silences: Sequence[str], lengths: Mapping[str, int]
) -> tuple[dict[str, list[Span]], RunReport]:
    """Return the states of the utterances whose alignment can be used, and a report of all.

    path: an MLF of states, such as `aa_s2`, `l-aa+r[2]`, or of phones, whose frames are divided among three states.
    entries: the dictionary; silences: phones of silence, the one with all states first.
    lengths: frames of 10 ms of each utterance.
    Raises FormatError if there is no utterance whose alignment can be used.
    """
    labels = read_mlf(path)
    report = RunReport("alignments")
    keys = keys_of_names(labels)
    phones = {phone for entry in entries for phone in entry.phones}
    aligned: dict[str, list[Span]] = {}
    for name, num_frames in lengths.items():
        try:
            if name not in keys:
                raise FormatError(f"{path}: no alignment of {name}; expected one of each utterance")
            key = keys[name]
            aligned[name] = states_of(labels[key], labels.where(key), phones, silences, num_frames)
        except FormatError as fault:
            report.fail(name, str(fault))
        else:
            report.done()
    if not report.num_done:
        raise FormatError(
            f"{path}: none of {len(report.lost)} alignments can be used; first error: {report.lost[0][2]}"
        )
    if not any(phone == SILENCE for spans in aligned.values() for (phone, _), *_ in spans):
        raise FormatError(f"{path}: no {' or '.join(silences)}; expected phones of silence; name them with --silence")
    return aligned, report


def states_of(
    labels: Sequence[Label], where: str, known: Collection[str], silences: Sequence[str], num_frames: int
) -> list[Span]:
    """Return the states of an utterance.

    Raises FormatError for gaps, for phones that are not in the dictionary, and for another number of frames.
    """
    bounds = frame_bounds(labels, where)
    if not len(bounds):
        raise FormatError(f"{where}: no labels; expected those of {num_frames} frames")
    end = int(bounds[-1, 1])
    if abs(end - num_frames) > MAX_DIFFERENCE:
        raise FormatError(f"{where}: {end} frames of 10 ms; expected {num_frames}, as the audio has")
    bounds = np.minimum(bounds, num_frames)
    bounds[-1, 1] = num_frames
    names = [model_of_state(label.name) for label in labels]
    places = []
    for model, state in names:
        phone = split_triphone(model)[1]
        if phone in silences:
            # Short pauses have the middle state of silence, as in HTK.
            state = state if phone == silences[0] else state and STATES[1]
            phone = SILENCE
        elif phone not in known:
            raise FormatError(
                f"{where}: phone '{phone}'; expected those of the dictionary, or {', '.join(silences)}; name phones of "
                "silence with --silence"
            )
        if state and state not in STATES:
            raise FormatError(f"{where}: state {state} of {model}; expected {STATES[0]} to {STATES[-1]}")
        places.append((phone, state))
    spans: list[Span] = []
    for span_state, (first, end) in zip(places, bounds.tolist()):
        if spans and span_state[0] == SILENCE and spans[-1][0] == span_state:
            first = spans.pop()[1]  # two silences in a row are one
        spans.append((span_state, first, end))
    states = []
    for (phone, state), first, end in spans:
        numbers = (state,) if state else STATES
        cuts = np.linspace(first, end, len(numbers) + 1).round().astype(int).tolist()
        states += [((phone, number), *span) for number, *span in zip(numbers, cuts, cuts[1:]) if span[0] < span[1]]
    return states


def name_of(place: tuple[str, int]) -> str:
    phone, state = place
    return f"{phone}_s{state}"
