r"""Build a decoding graph of monophones or cross-word triphones from a dictionary, HMM states and a language model.

worked example: monophones, with AN4's state list, alignments and dictionary
  argonaut graph --state-list ci_states.list --alignment train.ci_states.mlf \
                 --dict an4.dict --lm an4.lm --out exp/graph
prints the size of the graph after each step and writes to exp/graph
  graph.dg       the compiled graph for `argon -graph`
  graph.fsa.gz   the same graph as AT&T text; HMM states are in brackets, words are not
  lookahead      for each word, the part of its language model score (-ln) that the graph contains
  state_map, transitions, cntkmap, silence
  outputs        output symbol of each word, if the dictionary has output symbols
  report         sizes, and the words that were left out
  guessed.dict   with --g2p: guessed pronunciations, the most doubtful word first
After editing the text by hand, compile it again:
  argon -precompile -infsm graph.fsa.gz -lookahead-file lookahead -transition-file transitions -graph g.dg

For a phone loop, in which each phone is its own word (TIMIT), omit --dict and name the silence model:
  argonaut graph --states state_map --transitions transitions --lm phones.arpa --silence h# --out exp/graph

Without a language model: --loop instead of --lm makes a loop in which all words have the same probability.  Decode it
with `argon` without -lm.

With --grammar instead of --lm, the graph has the sentences of a grammar: JSGF, HParse's notation, a word network in SLF
or a JSON list of phrases.  The word [unk] is a loop over all phones.  Decode it with `argon` without -lm, too.

Triphones from an HTK model set.  Stage one writes its states and transitions as tables to --hmms, stage two builds the
graph:
  argonaut graph --mmf macros hmmdefs --hmm-list tiedlist --trees trees --hmms exp/hmms \
                 --dict words.dict --lm words.arpa --state-list senones.list --out exp/graph
Without --lm, --lm-collection, --loop and --grammar only stage one runs; with --hmms and without --mmf only stage two.
A --states file with names of triphones (l-c+r) can replace the model set.
"""

import argparse
import codecs
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from readers.common.report import RunReport
from readers.errors import ConfigError, GraphError
from recipes.cli.dictionaries import add_dictionary_options, add_guess_option, open_dictionary, with_guesses

SHOWN_WORDS = 5  # of the words that are left out; the report lists all


def add_arguments(parser: argparse.ArgumentParser) -> None:
    files = parser.add_argument_group("files")
    files.add_argument(
        "--states", metavar="FILE", help="state map: lines `model s1 s2 s3` (default: made from --state-list)"
    )
    files.add_argument(
        "--state-list", metavar="FILE", help="state of each network output, one per line, for the cntkmap"
    )
    files.add_argument("--transitions", metavar="FILE", help="lines `[state] ln_self ln_forward`")
    files.add_argument(
        "--alignment",
        metavar="FILE",
        nargs="+",
        help="estimate the transitions from this state alignment instead: an MLF, or archives of Kaldi that contain "
        "the line numbers of --state-list, from 0",
    )
    files.add_argument("--dict", metavar="FILE", help="dictionary (default: loop over all phones)")
    add_dictionary_options(files)
    add_guess_option(files, "words of the language model or grammar")
    files.add_argument("--lm", metavar="FILE", help="ARPA language model, plain or .gz")
    files.add_argument(
        "--lm-collection", metavar="FILE", help="instead of --lm: lines `ARPA-file weight`, interpolated"
    )
    files.add_argument(
        "--loop",
        action="store_true",
        help="instead of --lm: a loop over all words, or phones without --dict, with equal probabilities",
    )
    files.add_argument("--grammar", metavar="FILE", help="instead of --lm: the sentences of a grammar")
    files.add_argument("--out", metavar="DIR", help="directory for the results")
    model_set = parser.add_argument_group("triphones: an HTK model set, or the tables extracted from one")
    model_set.add_argument("--mmf", metavar="FILE", nargs="+", help="HTK model definitions (text), read in this order")
    model_set.add_argument("--hmm-list", metavar="FILE", help="lines `logical physical` (default: the models of --mmf)")
    model_set.add_argument("--trees", metavar="FILE", help="decision trees of HHEd's ST command, for unseen triphones")
    model_set.add_argument("--hmms", metavar="DIR", help="tables of the model set: written with --mmf, else read")
    graph = parser.add_argument_group("graph")
    graph.add_argument(
        "--silence", metavar="PHONE", help="silence model (default: pronunciation of <s> in the dictionary)"
    )
    between = graph.add_mutually_exclusive_group()
    between.add_argument("--optional-silence", action="store_true", default=None, help="allow silence between words")
    between.add_argument("--no-optional-silence", dest="optional_silence", action="store_false", help="do not allow it")
    graph.add_argument(
        "--sil-prob",
        type=float,
        metavar="P",
        help="probability of silence between words (default: silence has no cost)",
    )
    graph.add_argument(
        "--sil-topology",
        choices=("left-to-right", "any-order"),
        default="left-to-right",
        help="any-order: all transitions between the silence states are allowed, as in HTK's silence model with skips",
    )
    graph.add_argument(
        "--short-pause", metavar="NAME", help="short-pause model for triphones (default: sp, if present)"
    )
    graph.add_argument(
        "--pron-scale", type=float, default=1.0, metavar="X", help="scale of ln pronunciation probabilities (1)"
    )
    graph.add_argument(
        "--drop-missing",
        action="store_true",
        help="leave out words that are not in the language model, and pronunciations with phones that have no model",
    )


def run(arguments: argparse.Namespace) -> int:
    from readers.common.files import require_writable

    from_model_set = bool(arguments.mmf or arguments.hmms or arguments.trees)
    if not from_model_set and not arguments.states and not arguments.state_list:
        raise ConfigError("command line: no HMM states; expected --states, --state-list, --mmf or --hmms")
    given = [option for option, value in language_models(arguments).items() if value]
    if len(given) > 1:
        raise ConfigError(f"command line: both {given[0]} and {given[1]}; expected one of them")
    only_tables = bool(arguments.mmf and arguments.hmms and not given)
    if not given and not only_tables:
        hint = ", or --hmms for the tables alone" if arguments.mmf else ""
        raise ConfigError(
            "command line: no language model; expected --lm, --lm-collection, --grammar, or --loop for a loop in "
            f"which all words have the same probability{hint}"
        )
    if not only_tables:
        if not arguments.out:
            raise ConfigError("command line: --out is missing; expected a directory for the graph")
        require_writable(Path(arguments.out) / "graph.dg")
        require_writable(Path(arguments.out) / "guessed.dict", [arguments.dict, arguments.g2p])
    if arguments.mmf and arguments.hmms:
        require_writable(Path(arguments.hmms) / "state_map")
    models = phone_models(arguments)
    if arguments.mmf and arguments.hmms:
        models.save(arguments.hmms)
    if from_model_set:
        print(
            f"models: {len(models.states)} logical, {len(set(models.states.values()))} different, "
            f"{len(set(models.senones.values()))} senones",
            flush=True,
        )
    if only_tables:
        print(f"tables: {arguments.hmms}")
        return 0
    return build(arguments, models, from_model_set)


def language_models(arguments: argparse.Namespace) -> dict[str, object]:
    """Return option -> value of the options that give the language model; one of them is needed."""
    names = ("lm", "lm_collection", "loop", "grammar")
    return {f"--{name.replace('_', '-')}": getattr(arguments, name) for name in names}


def open_model(arguments: argparse.Namespace, words: list[str]):
    """Return the language model; words: those of a loop."""
    from decoder.lm.collection import open_collection
    from decoder.lm.estimation import uniform
    from decoder.lm.mapped_model import open_language_model

    if arguments.loop:
        return uniform(words)
    print(f"reading {arguments.lm or arguments.lm_collection}", flush=True)
    return open_language_model(arguments.lm, print) if arguments.lm else open_collection(arguments.lm_collection, print)


def build(arguments: argparse.Namespace, models, from_model_set: bool) -> int:
    """Run stage two: build and write the graph."""
    from decoder.grammars import GrammarOptions, build_grammar_graph, open_grammar
    from decoder.graph import GraphOptions, build_monophone_graph, build_triphone_graph, has_context
    from decoder.graph.lexicon import SHORT_PAUSE
    from readers.htk.frame_labels import read_state_list

    state_list = read_state_list(arguments.state_list) if arguments.state_list else None
    cntkmap = models.score_rows(state_list) if from_model_set and state_list else None
    if state_list and cntkmap is None:
        cntkmap = {state: i for i, state in enumerate(state_list)}
    options = GraphOptions(
        silence=arguments.silence,
        optional_silence=arguments.optional_silence,
        silence_probability=arguments.sil_prob,
        silence_topology=arguments.sil_topology,
        short_pause=arguments.short_pause,
        pronunciation_scale=arguments.pron_scale,
        drop_missing=arguments.drop_missing,
    )
    dictionary = open_dictionary(arguments)

    def progress(done: int, total: int, step: str, states: int, arcs: int) -> None:
        print(f"{step:<13} {states:>9} states {arcs:>9} arcs", flush=True)

    if dictionary is None:  # a phone loop
        pauses = (options.silence, options.short_pause or SHORT_PAUSE)
        words = [phone for phone in models.states if phone not in pauses]
    else:
        words = [entry.word for entry in dictionary]
    if arguments.g2p and arguments.loop:
        raise ConfigError("command line: --g2p with --loop, whose words are those of --dict; expected one of them")
    if arguments.grammar and dictionary is None:
        raise ConfigError("command line: --grammar without --dict; expected a dictionary, which a grammar needs")
    model = None if arguments.grammar else open_model(arguments, words)
    network = open_grammar(arguments.grammar) if arguments.grammar else None
    if arguments.g2p:
        words = words_to_pronounce(model, network, dictionary or ())
        dictionary = with_guesses(arguments, dictionary, words, Path(arguments.out) / "guessed.dict")
    source = arguments.hmms or " + ".join(arguments.mmf or [arguments.states or arguments.state_list])
    try:
        if arguments.grammar:
            grammar = GrammarOptions(drop_missing=options.drop_missing)
            graph = build_grammar_graph(network, models, dictionary, options, grammar, progress)
        elif from_model_set or has_context(models):
            if dictionary is None:
                raise GraphError("no --dict; expected a dictionary, which a triphone graph needs")
            graph = build_triphone_graph(models, dictionary, model, options, progress)
        else:
            graph = build_monophone_graph(models.states, models.transitions, dictionary, model, options, progress)
    except GraphError as fault:  # two of these files do not match: name all of them
        files = (source, arguments.dict, arguments.lm or arguments.lm_collection or arguments.grammar)
        raise GraphError(f"{' + '.join(filter(None, files))}: {fault}") from fault
    report = write_graph(Path(arguments.out), graph, models, cntkmap, arguments.sil_topology)
    show_dropped(graph.dropped, "words", arguments.verbose)
    show_dropped(graph.dropped_pronunciations, "pronunciations of words that have others", arguments.verbose)
    print(f"graph: {arguments.out}: {graph.acceptor.num_states} states, {graph.acceptor.num_arcs} arcs")
    print(report.summary())
    return 0  # words that are left out were asked to be


def words_to_pronounce(model, network, dictionary: list) -> Iterable[str]:
    """Return the words of a language model or grammar; those of a grammar may differ in case from the dictionary."""
    if network is None:
        return model.vocabulary
    known = {entry.word.casefold() for entry in dictionary}
    return [word for word in network.words if word.casefold() not in known]


def show_dropped(dropped: list[tuple[str, str]], what: str, verbose: int) -> None:
    """Print how many were left out for each reason, and the words themselves if they are few or verbose is set."""
    if verbose or len(dropped) <= SHOWN_WORDS:
        for word, reason in dropped:
            print(f"left out: {word}: {reason}")
    else:
        for reason, number in Counter(reason for _, reason in dropped).most_common():
            print(f"left out: {number} {what}: {reason}")


def phone_models(arguments: argparse.Namespace):
    """Run stage one, or read the tables that replace it."""
    from decoder.graph import PhoneModels, distil, from_trees
    from readers.htk.frame_labels import read_state_list
    from readers.htk.hmm_list import read_hmm_list
    from readers.htk.mmf import read_mmf
    from readers.htk.trees import read_trees
    from readers.tables.hmm_tables import read_state_map

    trees = read_trees(arguments.trees) if arguments.trees else None
    if arguments.mmf:
        model_set = read_mmf(arguments.mmf)
        names = read_hmm_list(arguments.hmm_list) if arguments.hmm_list else None
        try:
            models = distil(model_set, names, trees, contexts(arguments, trees), print)
        except GraphError as fault:
            files = (*arguments.mmf, arguments.hmm_list, arguments.trees)
            raise GraphError(f"{' + '.join(filter(None, files))}: {fault}") from fault
    elif arguments.trees:
        if not arguments.states:
            raise ConfigError(
                "command line: --trees without --mmf or --states; expected one of them, for the silence states"
            )
        models = from_trees(trees, read_state_map(arguments.states), contexts(arguments, trees))
    elif arguments.hmms:
        models = PhoneModels.load(arguments.hmms)
    elif arguments.states:
        models = PhoneModels(read_state_map(arguments.states))
    else:
        from readers.tables.state_names import state_map_of

        models = PhoneModels({m: tuple(s) for m, s in state_map_of(read_state_list(arguments.state_list)).items()})
    wanted = not (arguments.mmf or arguments.hmms or arguments.trees)
    if arguments.transitions or arguments.alignment or wanted:
        models = models.with_transitions(read_or_estimate_transitions(arguments, models))
    return models


def contexts(arguments: argparse.Namespace, trees) -> list[str]:
    """Return the phones that can be neighbours in a triphone: those of the dictionary, else all that have trees."""
    from decoder.graph.lexicon import SHORT_PAUSE

    if trees is None:
        return []
    phones = [phone for phone, _ in trees.trees]
    if arguments.dict:
        phones = [phone for entry in open_dictionary(arguments) for phone in entry.phones]
    no_context = arguments.short_pause or SHORT_PAUSE
    return [phone for phone in dict.fromkeys([*phones, arguments.silence or "sil"]) if phone != no_context]


def read_or_estimate_transitions(arguments: argparse.Namespace, models) -> dict[str, tuple[float, float]]:
    from decoder.graph.transitions import estimate_transitions, labels_of_classes
    from readers.htk.frame_labels import read_state_list
    from readers.htk.mlf import read_mlf
    from readers.kaldi.alignments import read_alignments
    from readers.tables.hmm_tables import read_transitions

    if bool(arguments.transitions) == bool(arguments.alignment):
        found = "both --transitions and" if arguments.transitions else "neither --transitions nor"
        raise ConfigError(f"command line: {found} --alignment; expected one of them")
    if arguments.transitions:
        return read_transitions(arguments.transitions)
    senones = list(dict.fromkeys(models.senones.values()))
    shown = " ".join(arguments.alignment)
    if all(map(is_archive, arguments.alignment)):
        numbered = read_state_list(arguments.state_list) if arguments.state_list else senones
        alignment = (
            (f"{path}: {key}", labels_of_classes(classes, numbered, f"{path}: {key}"))
            for path in arguments.alignment
            for key, classes in read_alignments(path)
        )
        estimate = estimate_transitions(alignment, senones)
    elif len(arguments.alignment) == 1:
        estimate = estimate_transitions(read_mlf(arguments.alignment[0]), senones)
    else:
        raise ConfigError(f"command line: --alignment {shown}; expected one MLF, or archives of Kaldi")
    if arguments.verbose and estimate.unseen:
        print(f"{shown}: no frames of {', '.join(estimate.unseen)}; self-loop probability set to 0.5")
    return estimate.transitions


def is_archive(path: str) -> bool:
    """Whether a file with an alignment is an archive of Kaldi: it has content, and not that of a label file."""
    from readers.htk.mlf import HEADER

    with Path(path).open("rb") as file:
        begin = file.read(64).removeprefix(codecs.BOM_UTF8).lstrip()
    others = (HEADER.encode(), codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, b"\x1f\x8b")  # the last is gzip
    return bool(begin) and not begin.startswith(others)


def write_graph(out: Path, graph, models, cntkmap: dict[str, int] | None, topology: str) -> RunReport:
    """Write all files of the output directory.

    The graph is written last, so that a graph never exists without its tables.
    """
    from decoder.graph.compiled_graph import precompile
    from decoder.graph.graph_file import save_graph
    from readers.common.files import atomic_write
    from readers.language.att import write_acceptor
    from readers.tables import hmm_tables

    report = RunReport("words", num_done=len(graph.lookahead) - 2)  # without <s> and </s>
    for word, reason in graph.dropped:
        report.skip(word, reason)
    compiled = precompile(
        graph.acceptor,
        models.transitions,
        graph.lookahead,
        models.states,
        graph.outputs,
        where=str(out / "graph.fsa.gz"),
    )
    models.save(out)
    hmm_tables.write_lookahead(out / "lookahead", graph.lookahead)
    if cntkmap is not None:
        if models.transitions is None:  # then the compiled graph contains only the states that it uses
            known = set(compiled.states)
            cntkmap = {state: row for state, row in cntkmap.items() if state in known}
        hmm_tables.write_cntkmap(out / "cntkmap", cntkmap)
    if graph.silence is not None:
        hmm_tables.write_silence(out / "silence", graph.silence, topology)
    else:  # the file of an earlier run would not match the new tables
        (out / "silence").unlink(missing_ok=True)
    if graph.outputs:
        with atomic_write(out / "outputs", "w") as file:
            file.writelines(f"{word} [{output}]\n" for word, output in graph.outputs.items())
    with atomic_write(out / "report", "w") as file:
        file.write(f"# {report.summary()}\n")
        file.writelines(f"# one pronunciation less: {word}: {why}\n" for word, why in graph.dropped_pronunciations)
        file.writelines(f"# {step}: {states} states, {arcs} arcs\n" for step, states, arcs in graph.sizes)
        file.writelines(f"{word}\t{outcome}\t{reason}\n" for word, outcome, reason in report.lost)
    write_acceptor(out / "graph.fsa.gz", graph.acceptor)
    save_graph(compiled, out / "graph.dg")
    return report
