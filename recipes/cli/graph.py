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

For a network with CTC outputs, --tokens names them; words are spelled with tokens, or as --dict says:
  argonaut graph --tokens tokens.txt --lm words.arpa --out exp/graph
The blank may stand before, between and after tokens.  The graph has no sentence marks.

Triphones from an HTK model set.  Stage one writes its states and transitions as tables to --hmms, stage two builds the
graph:
  argonaut graph --mmf macros hmmdefs --hmm-list tiedlist --trees trees --hmms exp/hmms \
                 --dict words.dict --lm words.arpa --state-list senones.list --out exp/graph
Without --lm, --lm-collection, --loop and --grammar only stage one runs; with --hmms and without --mmf only stage two.
A --states file with names of triphones (l-c+r) can replace the model set.
"""

from collections import Counter

from decoder.grammars.options import GraphFiles
from recipes.cli.command import Command, Console
from recipes.cli.console import show_guesses

SHOWN_WORDS = 5  # of the words that are left out; the report lists all


def run(options: GraphFiles, console: Console) -> int:
    from decoder.grammars.job import make_graph

    outcome = make_graph(options, log=console.log, note=console.note)
    if console.verbose and outcome.estimate and outcome.estimate.unseen:
        unseen = ", ".join(outcome.estimate.unseen)
        alignment = " ".join(map(str, options.alignment))
        print(f"{alignment}: no frames of {unseen}; self-loop probability set to 0.5")
    if outcome.graph is None:
        print(f"tables: {options.hmms}")
        return 0
    show_guesses(outcome.guesses, console.verbose)
    show_dropped(outcome.graph.dropped, "words", console.verbose)
    show_dropped(outcome.graph.dropped_pronunciations, "pronunciations of words that have others", console.verbose)
    acceptor = outcome.graph.acceptor
    print(f"graph: {options.out}: {acceptor.num_states} states, {acceptor.num_arcs} arcs")
    print(outcome.report.summary())
    return 0  # words that are left out were asked to be


def show_dropped(dropped: list[tuple[str, str]], what: str, verbose: int) -> None:
    """Print how many were left out for each reason, and the words themselves if they are few or verbose is set."""
    if verbose or len(dropped) <= SHOWN_WORDS:
        for word, reason in dropped:
            print(f"left out: {word}: {reason}")
    else:
        for reason, number in Counter(reason for _, reason in dropped).most_common():
            print(f"left out: {number} {what}: {reason}")


COMMAND = Command("graph", GraphFiles, run)
