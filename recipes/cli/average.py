r"""Average several alignments of the same utterances: the means of their phone boundaries are more accurate than each.

worked example, with the alignments of two flat starts on different features:
  argonaut average mfcc/states.mlf plp/states.mlf -o averaged.mlf
writes the first alignment with the means of both alignments' boundaries, and ends with
  averaged: 948 utterances of 2 alignments, 930 with all of them
An alignment counts only in utterances where it has the same phones as the first one; silence may differ.
"""

from decoder.alignment.average_job import AverageOptions, average
from recipes.cli.command import Command, Console
from recipes.cli.console import show_losses


def run(options: AverageOptions, console: Console) -> int:
    with console.progress() as progress:
        result = average(options, progress=progress)
    report = result.report
    num_alignments = len(options.alignments)
    show_losses(report, options.report_path, console.verbose, options.alignments[0])
    print(report.summary())
    print(
        f"averaged: {report.num_done} utterances of {num_alignments} alignments, {result.num_complete} with all of them"
    )
    return report.exit_status


COMMAND = Command("average", AverageOptions, run)
