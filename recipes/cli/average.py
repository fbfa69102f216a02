r"""Average several alignments of the same utterances: the means of their phone boundaries are more accurate than each.

worked example, with the alignments of two flat starts on different features:
  argonaut average mfcc/states.mlf plp/states.mlf -o averaged.mlf
writes the first alignment with the means of both alignments' boundaries, and ends with
  averaged: 948 utterances of 2 alignments, 930 with all of them
An alignment counts only in utterances where it has the same phones as the first one; silence may differ.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path

from readers.common.report import RunReport
from readers.errors import ArgonautError, ConfigError
from recipes.cli.console import one_line, progress_display, show_losses


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "alignments", metavar="MLF", nargs="+", help="alignments of states with phones beside them; two or more"
    )
    parser.add_argument("-o", "--output", metavar="MLF", required=True, help="alignment to write")
    parser.add_argument(
        "--silence",
        metavar="NAMES",
        default="sil,sp",
        help="phones that may be in other places, separated by commas (sil,sp)",
    )
    parser.add_argument(
        "--period", type=float, default=10.0, metavar="MS", help="milliseconds from frame to frame (10)"
    )


def run(arguments: argparse.Namespace) -> int:
    from decoder.alignment.averaging import average_alignments
    from readers.common.files import require_writable
    from readers.common.names import names_for_any_path
    from readers.htk.mlf import read_mlf, write_mlf

    if len(arguments.alignments) < 2:
        raise ConfigError("command line: one alignment; expected at least two")
    period = round(arguments.period * 10_000) if 0 < arguments.period < 1e6 else 0
    if not period:
        raise ConfigError(f"command line: --period {arguments.period:g}; expected milliseconds above 0")
    report_path = Path(f"{arguments.output}.report")
    for path in (arguments.output, report_path):
        require_writable(path, arguments.alignments)
    silence = tuple(filter(None, map(str.strip, arguments.silence.split(","))))
    first, *others = (read_mlf(path) for path in arguments.alignments)
    report, complete = RunReport("utterances"), 0
    short = names_for_any_path(list(first))

    def entries(show) -> Iterator[tuple[str, list]]:
        nonlocal complete
        for number, name in enumerate(first, start=1):
            found = [labels for other in others if (labels := other.lookup(f"{name}.lab"))]
            try:
                average = average_alignments([first[name], *found], silence, period, first.where(name))
            except ArgonautError as fault:
                report.fail(name, one_line(fault))
                continue
            complete += average.num_used == len(arguments.alignments)
            report.done()
            yield f"*/{short[name]}.lab", average.labels
            show(number, len(first))

    with progress_display("average") as show:
        write_mlf(arguments.output, entries(show))
    report.write(report_path)
    show_losses(report, report_path, arguments.verbose, arguments.alignments[0])
    print(report.summary())
    print(
        f"averaged: {report.num_done} utterances of {len(arguments.alignments)} alignments, {complete} with all of them"
    )
    return report.exit_status
