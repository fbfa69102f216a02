"""Compute word confidences, consensus networks and oracle error rates from lattices; convert and rescore lattices.

worked example:
  argonaut lattice words --lattices exp/an4/decode/flat/lattices/test.index -o words.ctm
writes the words of the best paths with times and confidences;
  argonaut lattice words --lattices exp/an4/decode/flat/lattices/test.index --by consensus --mlf consensus.mlf
writes the words with the fewest expected errors instead (minimum Bayes risk decoding);
  argonaut lattice consensus --lattices exp/an4/decode/flat/lattices/test.index -o slots.txt
writes a line `utterance [ word probability ... ] [ ... ]` per utterance, like Kaldi's sausages; <eps> is no word;
  argonaut lattice oracle --lattices exp/an4/decode/flat/lattices/test.index --reference exp/an4/labels/test.words.mlf
prints the error rate of the path with the fewest errors in each lattice.

  argonaut lattice determinise --lattices exp/an4/decode/flat/lattices/test.index --prefix det
writes det1.lat, ... and det.index: lattices in which each word sequence occurs once;
  argonaut lattice kaldi --lattices det.index -o lattices.txt --words words.txt
writes lattices in Kaldi's text format, with --binary in its binary format;
  argonaut lattice openfst --lattices det.index --prefix fst/test --words words.txt
writes word acceptors for OpenFst: fst/test1.txt, ... (for fstcompile --acceptor --isymbols=words.txt), or with --binary
fst/test1.fst, ...

  argonaut lattice rescore --lattices exp/an4/decode/flat/lattices/test.index --lm large.arpa --prefix new
writes new1.lat, ... and new.index: the same paths with the exact scores of another n-gram model.

  argonaut lattice combine --lattices first/test.index --with second/test.index --prefix both
writes both1.lat, ... and both.index: the paths of two systems, each with half of the probability.

  argonaut lattice words --lattices exp/chain/decode --kaldi-words exp/chain/graph/words.txt --acoustic-scale 1 -o w.ctm
does the same for lattices of Kaldi: an archive, text or binary, compact or not, or a directory of lat.1.gz, ...

Formats of words with times: .ctm, .stm and .json are one file; .TextGrid, .srt and .vtt are written to a directory, one
file for each utterance.
"""

from decoder.lattices import jobs
from readers.common.faults import counted
from recipes.cli.command import Command, Console
from recipes.cli.console import show_losses


def run_words(options: jobs.WordsOptions, console: Console) -> int:
    with console.progress("lattices") as progress:
        result = jobs.find_words(options, progress=progress)
    num_words = sum(map(len, result.words.values()))
    return finish(
        options, console, result, f"{counted(num_words, 'word')}, mean confidence {result.mean_confidence:.3f}"
    )


def run_consensus(options: jobs.ConsensusOptions, console: Console) -> int:
    with console.progress("lattices") as progress:
        result = jobs.find_consensus(options, progress=progress)
    errors = sum(network.expected_errors for network in result.networks.values())
    num_words = sum(len(network.words) for network in result.networks.values())
    return finish(options, console, result, f"{counted(num_words, 'word')}, {errors:.1f} errors expected")


def run_oracle(options: jobs.OracleOptions, console: Console) -> int:
    with console.progress("lattices") as progress:
        result = jobs.find_oracle(options, progress=progress)
    show_losses(result.report, options.report, console.verbose, options.lattices)
    print(result.report.summary())
    if result.words:
        rate = 100 * result.num_errors / result.num_words if result.num_words else 0.0
        counts = {"utterance": len(result.words), "word": result.num_words, "error": result.num_errors}
        print(f"oracle WER {rate:.1f}% ({', '.join(counted(number, unit) for unit, number in counts.items())})")
    return result.report.exit_status


def run_determinise(options: jobs.DeterminiseOptions, console: Console) -> int:
    with console.progress("lattices") as progress:
        result = jobs.determinise_lattices(options, progress=progress)
    return finish(options, console, result, f"{result.num_read} links became {result.num_written}")


def run_rescore(options: jobs.RescoreOptions, console: Console) -> int:
    with console.progress("lattices") as progress:
        result = jobs.rescore_lattices(options, progress=progress, note=console.note)
    links = f"{result.num_read} links became {result.num_written}"
    return finish(options, console, result, f"{links}, {result.num_changed} best paths have other words")


def run_combine(options: jobs.CombineOptions, console: Console) -> int:
    with console.progress("lattices") as progress:
        result = jobs.combine_lattices(options, progress=progress)
    return finish(options, console, result, f"{result.num_written} links of {1 + len(options.others)} systems")


def run_kaldi(options: jobs.KaldiOptions, console: Console) -> int:
    with console.progress("lattices") as progress:
        result = jobs.write_kaldi(options, progress=progress)
    scales = ", ".join(f"{scale:g}" for scale in result.acoustic_scales)
    return finish(options, console, result, f"acoustic scale {scales}")


def run_openfst(options: jobs.OpenFstOptions, console: Console) -> int:
    with console.progress("lattices") as progress:
        result = jobs.write_openfst(options, progress=progress)
    arcs = f"{counted(result.num_arcs, 'arc')} of {counted(result.num_words, 'word')}"
    return finish(options, console, result, arcs)


def finish(options: jobs.LatticeFiles, console: Console, result: "jobs.LatticeResult", figures: str) -> int:
    """Show which lattices were lost, and print the figures of what was written; return the exit status."""
    show_losses(result.report, options.report, console.verbose, options.lattices)
    outcome = "nothing"
    if result.files:
        first, *later_files = result.files
        outcome = f"{first}{f' and {len(later_files)} more' if later_files else ''}: {figures}"
    print(f"{outcome}; {result.report.summary()}")
    return result.report.exit_status


ACTIONS = (
    ("words", jobs.WordsOptions, run_words, "write words with times and confidences"),
    ("consensus", jobs.ConsensusOptions, run_consensus, "write consensus networks (sausages)"),
    ("oracle", jobs.OracleOptions, run_oracle, "print the lowest error rate that the lattices allow"),
    ("determinise", jobs.DeterminiseOptions, run_determinise, "write lattices in which each word sequence occurs once"),
    ("kaldi", jobs.KaldiOptions, run_kaldi, "write lattices in Kaldi's format, text or binary"),
    ("openfst", jobs.OpenFstOptions, run_openfst, "write word acceptors for OpenFst"),
    ("rescore", jobs.RescoreOptions, run_rescore, "replace the language model scores by those of another n-gram"),
    ("combine", jobs.CombineOptions, run_combine, "join the lattices of several systems"),
)
COMMAND = Command(
    "lattice", actions=tuple(Command(name, options, run, help=text) for name, options, run, text in ACTIONS)
)
