"""Read a configuration of `cntk` and all files that it names, and list every fault, before any work is done.

worked example:
  argonaut validate timit.cntk+mine.cntk command=TIMIT_Train
prints
  TIMIT_Train
    mine.cntk:12: TIMIT_Train.SGD.maxEpoch is not known here; did you mean maxEpochs
    lists/train.scp:817: no labels in labels/train.mlf; expected an entry 'fcjf0-sx37'
    lists/train.scp:902: frames [0,411] of feat/fdaw0-si1406.fbank, which has 398; expected a last frame of at most 397
  3 faults in 2 files; checked 1 command, 948 utterances

It checks options (unknown, misspelled, out of range), lists and label files (malformed lines, repeated names, missing
files, different order of utterances), headers and values of features, lengths of labels against features, states
against state lists, dimensions of networks against readers, models against data, and whether outputs can be written.
Notes on settings that are accepted without effect are no faults.
A bundle is checked, too: argonaut validate an4.argo compares its checksums and puts its parts together.

-v also prints what a run would do.  Exit status: 0 no fault, 1 some faults, 2 the configuration could not be read.
"""

from acoustic.actions.validation_options import ValidateOptions
from recipes.cli.command import Command, Console


def run(options: ValidateOptions, console: Console) -> int:
    from acoustic.actions.validation_job import validate
    from decoder.recognizer.bundle import is_bundle

    if is_bundle(options.files) or options.files.endswith(".argo"):
        return run_bundle(options)
    with console.progress() as progress:
        result = validate(options, progress=progress)
    if console.verbose:
        for figures in result.figures:
            print(*figures.lines(), sep="\n")
    for note in result.notes:
        print(f"note: {note}")
    for command, faults in result.faults.items():
        print(command or "all commands")
        for fault in faults:
            print(f"  {fault}")
    print(result.summary)
    return int(bool(result.faults))


def run_bundle(options: ValidateOptions) -> int:
    """Open a bundle and put its parts together, which checks all of them; raises ArgonautError for a fault."""
    from decoder import Recognizer

    first = "".join(options.settings[:1])
    options.require("settings", not first, f"{first} is given beside a bundle; expected one bundle only")
    recognizer = Recognizer.load(options.files)
    recognizer.can_align()
    assert recognizer.bundle is not None  # it was loaded from one
    print(f"{options.files}: no faults; checked {len(recognizer.bundle.parts)} members and that they fit together")
    return 0


COMMAND = Command("validate", ValidateOptions, run, mixed=True)
