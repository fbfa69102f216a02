"""Reads the phone models of a decoding graph: from an HTK model set, its tables, decision trees or names of states."""

import codecs
from collections.abc import Sequence
from pathlib import Path

from decoder.grammars.options import GraphFiles
from decoder.graph.options import SHORT_PAUSE
from decoder.graph.phone_models import PhoneModels, distil, from_trees
from decoder.graph.transitions import TransitionEstimate, estimate_transitions, labels_of_classes
from readers.common.report import Log
from readers.errors import GraphError
from readers.htk.dictionary import Pronunciation
from readers.htk.frame_labels import read_state_list
from readers.htk.hmm_list import read_hmm_list
from readers.htk.mlf import read_mlf
from readers.htk.mmf import read_mmf
from readers.htk.storage.label_fields import HEADER
from readers.htk.trees import DecisionTrees, read_trees
from readers.kaldi.alignments import read_alignments
from readers.tables.hmm_tables import read_state_map, read_transitions
from readers.tables.state_names import state_map_of


def read_models(
    options: GraphFiles, dictionary: Sequence[Pronunciation], log: Log
) -> tuple[PhoneModels, TransitionEstimate | None]:
    """Return the phone models, and the estimate of their transitions if they have an alignment.

    dictionary: its phones, or all that have trees if it is empty, are the neighbours in triphones.
    """
    models = _without_estimate(options, dictionary, log)
    if options.transitions:
        return models.with_transitions(read_transitions(options.transitions)), None
    if not options.alignment:
        return models, None
    estimate = _estimate(options, models)
    return models.with_transitions(estimate.transitions), estimate


def _without_estimate(options: GraphFiles, dictionary: Sequence[Pronunciation], log: Log) -> PhoneModels:
    trees = read_trees(options.trees) if options.trees else None
    contexts = _contexts(options, trees, dictionary)
    if options.mmf:
        model_set = read_mmf(options.mmf)
        names = read_hmm_list(options.hmm_list) if options.hmm_list else None
        try:
            return distil(model_set, names, trees, contexts, log)
        except GraphError as fault:
            files = (*options.mmf, options.hmm_list, options.trees)
            raise GraphError(f"{' + '.join(map(str, filter(None, files)))}: {fault}") from fault
    if trees is not None and options.states:
        return from_trees(trees, read_state_map(options.states), contexts)
    if options.hmms:
        return PhoneModels.load(options.hmms)
    if options.states:
        return PhoneModels(read_state_map(options.states))
    assert options.state_list is not None
    state_map = state_map_of(read_state_list(options.state_list))
    return PhoneModels({model: tuple(states) for model, states in state_map.items()})


def _contexts(options: GraphFiles, trees: DecisionTrees | None, dictionary: Sequence[Pronunciation]) -> list[str]:
    """Return the phones that can be neighbours in a triphone."""
    if trees is None:
        return []
    phones = [phone for entry in dictionary for phone in entry.phones] or [phone for phone, _ in trees.trees]
    pause = options.graph.short_pause or SHORT_PAUSE
    return [phone for phone in dict.fromkeys([*phones, options.graph.silence or "sil"]) if phone != pause]


def _estimate(options: GraphFiles, models: PhoneModels) -> TransitionEstimate:
    """Estimate the transitions from the alignment."""
    senones = list(dict.fromkeys(models.senones.values()))
    if not all(map(_is_archive, options.alignment)):
        shown = " ".join(map(str, options.alignment))
        fine = len(options.alignment) == 1
        options.require("alignment", fine, f"is {shown}; expected one MLF, or archives of Kaldi")
        return estimate_transitions(read_mlf(options.alignment[0]), senones)
    numbered = read_state_list(options.state_list) if options.state_list else senones
    alignment = (
        (f"{path}: {key}", labels_of_classes(classes, numbered, f"{path}: {key}"))
        for path in options.alignment
        for key, classes in read_alignments(path)
    )
    return estimate_transitions(alignment, senones)


def _is_archive(path: Path) -> bool:
    """Whether a file with an alignment is an archive of Kaldi: it has content, and not that of a label file."""
    with path.open("rb") as file:
        begin = file.read(64).removeprefix(codecs.BOM_UTF8).lstrip()
    other_beginnings = (HEADER.encode(), codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, b"\x1f\x8b")  # the last is gzip
    return bool(begin) and not begin.startswith(other_beginnings)
