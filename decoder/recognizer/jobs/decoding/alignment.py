"""Aligns one utterance of a list with its transcript."""

from collections.abc import Sequence
from pathlib import Path

from decoder.alignment.aligner import Aligner, check_outputs
from decoder.g2p.completion import Guesses
from decoder.graph import GraphOptions, PhoneModels
from decoder.graph.graph_file import recorded_silence
from decoder.graph.transcript import TranscriptGraphs
from decoder.recognizer.jobs.decoding.options import DecodeOptions, flag_of
from decoder.recognizer.jobs.decoding.scores import open_source
from decoder.recognizer.jobs.decoding.transcripts import read_transcripts
from decoder.recognizer.jobs.decoding.utterances import Decoded, Numbered, timed, wider_beam
from decoder.results.outputs import alignment_labels
from readers.common.faults import naming
from readers.common.report import Log
from readers.errors import ArgonautError, ConfigError, GraphError
from readers.htk.dictionary import Pronunciation
from readers.htk.mlf import Label
from readers.htk.trees import split_triphone
from readers.tables.hmm_tables import read_cntkmap, read_state_map, read_transitions


class AlignmentPipeline:
    """Computes the labels of one utterance.  All threads share one instance.

    guessed: pronunciations of words that the dictionary lacks, if they have been guessed before.
    """

    def __init__(self, options: DecodeOptions, log: Log, guessed: Sequence[Pronunciation] = ()):
        transcripts = options.transcripts
        search = options.search
        dictionary = options.dictionary
        assert transcripts.alignmlf is not None
        self.level = transcripts.level or ("state" if options.output.detailed_alignment else "word")
        self.path = transcripts.alignmlf
        self.words = options.output.words
        self.acweight = 1.0 if search.acweight is None else search.acweight
        self.guesses = Guesses()
        self.guess_lines = list[str]()
        entries = dictionary.read(lambda text: log(f"note: {text}")) if dictionary.dict else None
        if entries is not None and guessed:
            entries = [*entries, *guessed]
        is_complete = dictionary.g2p is None or bool(guessed)
        graphs = _open_graphs(options, entries) if is_complete else None
        self.source = open_source(options.acoustic, log)
        self.transcripts = read_transcripts(self.path, self.source.entries(), self.source.list)
        if graphs is None:
            assert entries is not None
            path = Path(f"{options.output.outmlf or options.output.words}.guessed.dict")
            self.guesses = dictionary.guess(entries, self._transcribed_words(), path, self.guess_lines.append)
            graphs = _open_graphs(options, [*entries, *self.guesses.for_decoding()])
        self.aligner = Aligner(graphs, self.acweight, search.beam, options.widenings)
        if self.source.num_outputs is not None:
            check_outputs(graphs, self.source.num_outputs, self.source.name)

    def _transcribed_words(self) -> list[str]:
        transcripts = (self.transcripts.lookup(f"{entry.key}.lab") or () for entry in self.source.entries())
        return list(dict.fromkeys(label.name for labels in transcripts for label in labels))

    def __call__(self, numbered: Numbered) -> Decoded:
        _, entry = numbered
        name = f"{entry.key}.lab"  # an extension to be cut, since keys may contain dots
        transcript = self.transcripts.lookup(name)
        if transcript is None:
            raise ConfigError(f"{self.path}: no transcript; {self.transcripts.expected_entry(name)}")
        with naming(entry.path):
            scores, period, seconds, last = self.source.scores(entry)
        try:
            alignment = self.aligner.align([label.name for label in transcript], scores)
        except ArgonautError as fault:
            where = self.transcripts.where(name) if isinstance(fault, GraphError) else entry.path
            raise fault.reworded(f"{where}: {fault}") from fault

        def labels_at(level: str) -> list[Label]:
            return alignment_labels(alignment, level, period, last)

        words = phones = None
        if self.words:
            phones = [phone._replace(text=split_triphone(phone.text)[1]) for phone in timed(labels_at("phone"))]
            words = timed(labels_at("word"))
        wider = "" if alignment.beam == self.aligner.beam else wider_beam(alignment.beam, self.aligner.beam)
        return Decoded(scores.shape[1], period, "", labels_at(self.level), 0.0, words, phones, seconds, wider=wider)


def _open_graphs(options: DecodeOptions, dictionary: list[Pronunciation] | None) -> TranscriptGraphs:
    """Return the builders of alignment graphs, from the tables beside the graph or those given as options."""
    directory = options.graph.parent
    transcripts = options.transcripts
    silence = options.search.silence
    if options.state_map:
        models = PhoneModels(read_state_map(options.state_map))
    elif not (directory / "state_map").exists():
        raise ConfigError(
            f"{directory / 'state_map'}: missing; expected the tables that argonaut graph writes beside "
            f"{flag_of('graph')}, or {flag_of('state_map')}"
        )
    else:
        models = PhoneModels.load(directory)
    if options.compiling.transition_file:
        models = models.with_transitions(read_transitions(options.compiling.transition_file))
    model, topology = recorded_silence(directory)
    model = model if model in models.states else None  # the table may belong to other models than --state-map
    graph_options = GraphOptions(
        silence=silence[0] if silence else model,
        optional_silence=transcripts.optional_silence,
        silence_probability=transcripts.silence_probability,
        silence_topology=transcripts.silence_topology or topology,
        pronunciation_scale=transcripts.pronunciation_scale,
    )
    cost = options.search.sil_cost
    cntkmap = options.acoustic.cntkmap
    assert cntkmap is not None
    try:
        return TranscriptGraphs(models, dictionary, read_cntkmap(cntkmap), graph_options, 1.0 if cost is None else cost)
    except GraphError as fault:
        raise GraphError(f"{cntkmap} + {options.state_map or directory}: {fault}") from fault
