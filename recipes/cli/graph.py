"""Build a decoding graph of context-independent phones from dictionary, HMM states and language model.

worked example: with AN4's state list, alignments and dictionary
  argonaut graph --state-list ci_states.list --alignment train.ci_states.mlf \\
                 --dict an4.dict --lm an4.lm --out exp/graph
prints the size after each step and writes to exp/graph
  graph.dg       the compiled graph that `argon -graph` takes
  graph.fsa.gz   the same as AT&T text: HMM states in brackets, words bare
  lookahead      what the graph holds of each word's language model score (-ln)
  state_map, transitions, cntkmap
  outputs        only if the dictionary has output symbols: word and what is printed for it
  report         sizes, and the words left out
`argon -precompile true -infsm graph.fsa.gz -lookahead-file lookahead -transition-file transitions -graph g.dg`
compiles the text again, after it was changed by hand.

A phone loop (each phone its own word, for TIMIT): leave --dict away and name the silence:
  argonaut graph --states state_map --transitions transitions --lm phones.arpa --silence h# --out exp/graph
"""

import argparse
from pathlib import Path

from readers.errors import ConfigError, GraphError
from readers.report import RunReport


def add_arguments(parser: argparse.ArgumentParser) -> None:
    files = parser.add_argument_group("files")
    files.add_argument("--states", metavar="FILE", help="model state map: name s1 s2 s3 (default: by --state-list)")
    files.add_argument(
        "--state-list", metavar="FILE", help="state of each network output, one a line; gives the cntkmap"
    )
    files.add_argument("--transitions", metavar="FILE", help="lines [state] ln_self ln_forward")
    files.add_argument("--alignment", metavar="MLF", help="state alignments to estimate the transitions from instead")
    files.add_argument("--dict", metavar="FILE", help="HTK dictionary (default: a loop over all phones)")
    files.add_argument("--lm", metavar="FILE", required=True, help="ARPA language model, plain or .gz")
    files.add_argument("--out", metavar="DIR", required=True, help="directory for the results")
    graph = parser.add_argument_group("graph")
    graph.add_argument("--silence", metavar="PHONE", help="silence model (default: that of the dictionary's <s>)")
    between = graph.add_mutually_exclusive_group()
    between.add_argument(
        "--optional-silence", action="store_true", default=None, help="silence may stand between words"
    )
    between.add_argument("--no-optional-silence", dest="optional_silence", action="store_false", help="... may not")
    graph.add_argument(
        "--sil-prob", type=float, metavar="P", help="probability of silence between words (default: free)"
    )
    graph.add_argument(
        "--sil-topology",
        choices=("left-to-right", "any-order"),
        default="left-to-right",
        help="any-order: silence's states may follow each other in any order, as HTK's silence with its skips allows",
    )
    graph.add_argument(
        "--pron-scale", type=float, default=1.0, metavar="X", help="weight of pronunciation probabilities"
    )
    graph.add_argument("--drop-missing", action="store_true", help="leave out words that the language model lacks")


def run(arguments: argparse.Namespace) -> int:
    from decoder.graph import GraphOptions, build_monophone_graph, state_map_of
    from readers import hmm_tables
    from readers.arpa import read_arpa
    from readers.dictionary import read_dictionary
    from readers.files import require_writable
    from readers.frame_labels import read_state_list

    if not arguments.states and not arguments.state_list:
        raise ConfigError("command line: neither --states nor --state-list; expected one of them")
    require_writable(Path(arguments.out) / "graph.dg")
    state_list = read_state_list(arguments.state_list) if arguments.state_list else None
    state_map = hmm_tables.read_state_map(arguments.states) if arguments.states else state_map_of(state_list)
    transitions = read_or_estimate_transitions(arguments, state_map)
    options = GraphOptions(
        silence=arguments.silence,
        optional_silence=arguments.optional_silence,
        silence_probability=arguments.sil_prob,
        silence_topology=arguments.sil_topology,
        pronunciation_scale=arguments.pron_scale,
        drop_missing=arguments.drop_missing,
    )
    dictionary = read_dictionary(arguments.dict) if arguments.dict else None

    def progress(done: int, total: int, step: str, states: int, arcs: int) -> None:
        print(f"{step:<13} {states:>9} states {arcs:>9} arcs", flush=True)

    print(f"reading {arguments.lm}", flush=True)
    arpa = read_arpa(arguments.lm)
    try:
        graph = build_monophone_graph(state_map, transitions, dictionary, arpa, options, progress)
    except GraphError as fault:  # about what some of these files have in common
        files = (arguments.states or arguments.state_list, arguments.dict, arguments.lm)
        raise GraphError(f"{' + '.join(filter(None, files))}: {fault}") from fault
    report = write_graph(Path(arguments.out), graph, state_map, transitions, state_list)
    for word, reason in graph.dropped[: None if arguments.verbose else 5]:
        print(f"left out: {word}: {reason}")
    print(f"graph: {arguments.out}: {graph.acceptor.num_states} states, {graph.acceptor.num_arcs} arcs")
    print(report.summary())
    return report.exit_status


def read_or_estimate_transitions(arguments: argparse.Namespace, state_map) -> dict[str, tuple[float, float]]:
    from decoder.transitions import estimate_transitions
    from readers.hmm_tables import read_transitions
    from readers.mlf import read_mlf

    if bool(arguments.transitions) == bool(arguments.alignment):
        raise ConfigError("command line: expected either --transitions or --alignment")
    if arguments.transitions:
        return read_transitions(arguments.transitions)
    states = list(dict.fromkeys(state for names in state_map.values() for state in names))
    estimate = estimate_transitions(read_mlf(arguments.alignment), states)
    if arguments.verbose and estimate.unseen:
        print(f"{arguments.alignment}: no frames of {', '.join(estimate.unseen)}; they stay with probability 0.5")
    return estimate.transitions


def write_graph(out: Path, graph, state_map, transitions, state_list) -> RunReport:
    """Write all files of the directory; the graph comes last, so that it is never there without its tables."""
    from decoder.image import precompile
    from decoder.image_file import save_graph
    from readers import hmm_tables
    from readers.att import write_acceptor
    from readers.files import atomic_write

    report = RunReport("words", num_done=len(graph.lookahead) - 2)  # <s> and </s> are no words
    for word, reason in graph.dropped:
        report.skip(word, reason)
    image = precompile(
        graph.acceptor, transitions, graph.lookahead, state_map, graph.outputs, where=str(out / "graph.fsa.gz")
    )
    out.mkdir(parents=True, exist_ok=True)
    hmm_tables.write_state_map(out / "state_map", state_map)
    hmm_tables.write_transitions(out / "transitions", transitions)
    hmm_tables.write_lookahead(out / "lookahead", graph.lookahead)
    if state_list is not None:
        hmm_tables.write_cntkmap(out / "cntkmap", {state: i for i, state in enumerate(state_list)})
    if graph.outputs:
        with atomic_write(out / "outputs", "w") as file:
            file.writelines(f"{word} [{output}]\n" for word, output in graph.outputs.items())
    with atomic_write(out / "report", "w") as file:
        file.write(f"# {report.summary()}\n")
        file.writelines(f"# {step}: {states} states, {arcs} arcs\n" for step, states, arcs in graph.sizes)
        file.writelines(f"{word}\t{outcome}\t{reason}\n" for word, outcome, reason in report.lost)
    write_acceptor(out / "graph.fsa.gz", graph.acceptor)
    save_graph(image, out / "graph.dg")
    return report
