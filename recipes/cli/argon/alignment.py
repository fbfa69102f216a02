"""`argon -alignmlf`: align one entry of -infiles with its transcript."""

import argparse
from pathlib import Path

from readers.common.faults import naming
from readers.errors import ArgonautError, ConfigError, GraphError
from recipes.cli.argon.decoding import Decoded, timed, wider_beam
from recipes.cli.argon.options import spelled
from recipes.cli.argon.scores import open_source
from recipes.cli.dictionaries import open_dictionary, with_guesses


class AlignmentPipeline:
    """Computes the labels of one utterance.  All threads share one instance."""

    def __init__(self, arguments: argparse.Namespace, guesses: tuple = ()):
        from decoder.alignment.aligner import Aligner, check_outputs
        from recipes.cli.argon.transcripts import read_transcripts

        for name in ("lm", "lm_collection", "lattice_prefix", "no_partial", "hotwords"):
            if getattr(arguments, name):
                raise ConfigError(f"command line: {spelled(name)} with -alignmlf; expected it only when decoding")
        if arguments.detailed_alignment and arguments.level not in (None, "state"):
            raise ConfigError(
                f"command line: -detailed-alignment and --level {arguments.level}; expected only one, or --level state"
            )
        self.level = arguments.level or ("state" if arguments.detailed_alignment else "word")
        self.where = arguments.alignmlf
        dictionary, self.guesses = open_dictionary(arguments), guesses
        wanted = arguments.g2p and not guesses
        graphs = None if wanted else open_graphs(arguments, [*dictionary, *guesses] if guesses else dictionary)
        self.source, self.words = open_source(arguments), arguments.words
        self.transcripts = read_transcripts(arguments.alignmlf, self.source.entries(), self.source.list)
        if graphs is None:
            path = Path(f"{arguments.outmlf or arguments.words}.guessed.dict")
            known = with_guesses(arguments, dictionary, self.words_of_transcripts(), path)
            self.guesses = tuple(known[len(dictionary) :])
            graphs = open_graphs(arguments, known)
        self.aligner = Aligner(graphs, arguments.acweight, arguments.beam, arguments.widenings)
        if self.source.num_outputs is not None:
            check_outputs(graphs, self.source.num_outputs, self.source.name)

    def words_of_transcripts(self) -> list[str]:
        found = (self.transcripts.lookup(f"{entry.key}.lab") or () for entry in self.source.entries())
        return list(dict.fromkeys(label.name for labels in found for label in labels))

    def __call__(self, numbered) -> Decoded:
        from decoder.results.outputs import alignment_labels
        from readers.htk.trees import split_triphone

        _, entry = numbered
        name = f"{entry.key}.lab"  # an extension to be cut, since keys may contain dots
        labels = self.transcripts.lookup(name)
        if labels is None:
            raise ConfigError(f"{self.where}: no transcript; {self.transcripts.expected_entry(name)}")
        with naming(entry.path):
            scores, period, seconds, last = self.source.scores(entry)
        try:
            alignment = self.aligner.align([label.name for label in labels], scores)
        except ArgonautError as fault:
            place = self.transcripts.where(name) if isinstance(fault, GraphError) else entry.path
            raise type(fault)(f"{place}: {fault}") from fault

        def labels_at(level: str) -> list:
            return alignment_labels(alignment, level, period, last)

        words = phones = None
        if self.words:
            phones = [one._replace(text=split_triphone(one.text)[1]) for one in timed(labels_at("phone"))]
            words = timed(labels_at("word"))
        wider = "" if alignment.beam == self.aligner.beam else wider_beam(alignment.beam, self.aligner.beam)
        return Decoded(scores.shape[1], period, "", labels_at(self.level), 0.0, words, phones, seconds, wider=wider)


def open_graphs(arguments: argparse.Namespace, dictionary: list | None):
    """Return the builders of alignment graphs, from the tables beside -graph or those given as options."""
    from decoder.graph import GraphOptions, PhoneModels
    from decoder.graph.graph_file import recorded_silence
    from decoder.graph.transcript import TranscriptGraphs
    from readers.tables.hmm_tables import read_cntkmap, read_state_map, read_transitions

    directory = Path(arguments.graph).parent
    if arguments.state_map:
        models = PhoneModels(read_state_map(arguments.state_map))
    elif not (directory / "state_map").exists():
        raise ConfigError(
            f"{directory / 'state_map'}: missing; expected the tables that argonaut graph writes beside -graph, or "
            "--state-map"
        )
    else:
        models = PhoneModels.load(directory)
    if arguments.transition_file:
        models = models.with_transitions(read_transitions(arguments.transition_file))
    silence = (arguments.silence or "").split(",")
    if len(silence) > 1:
        raise ConfigError(f"command line: --silence {arguments.silence}; expected one model with -alignmlf")
    model, topology = recorded_silence(directory)
    model = model if model in models.states else None  # the table may belong to other models than --state-map
    options = GraphOptions(
        silence=silence[0] or model,
        optional_silence=arguments.optional_silence,
        silence_probability=arguments.sil_prob,
        silence_topology=arguments.sil_topology or topology,
        pronunciation_scale=arguments.pron_scale,
    )
    try:
        return TranscriptGraphs(models, dictionary, read_cntkmap(arguments.cntkmap), options, arguments.sil_cost)
    except GraphError as fault:
        raise GraphError(f"{arguments.cntkmap} + {arguments.state_map or directory}: {fault}") from fault
