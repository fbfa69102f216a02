"""Show what files are and their main figures: data, lists, models, graphs, language models, configurations.

worked example:
  argonaut info feat/cen1-fash-b.fbank lm.arpa
prints
  feat/cen1-fash-b.fbank: HTK parameter file
    kind       FBANK_D_A_Z
    frames     345 (3.45 s, one every 10 ms)
    values     72 per frame
    ...
  lm.arpa: ARPA language model
    order      2
    1-grams    107
    2-grams    1

The kind of a file is detected from its content, not from its name, except for label files of TIMIT (.phn, .wrd) and
maps of speakers (speakers, utt2spk).  Exit status: 1 if some files could not be read, 2 if none could.
"""

import json
from dataclasses import dataclass

from readers.config.options import Options, option
from readers.errors import ArgonautError
from recipes.cli.command import Command, Console
from recipes.cli.console import one_line


@dataclass(frozen=True, kw_only=True)
class InfoOptions(Options):
    """The files that are described, and how."""

    files: tuple[str, ...] = option(help="any file that Argonaut reads or writes", flag="FILE", metavar="FILE")
    json: bool = option(False, "print one JSON object per line and file")


def run(options: InfoOptions, console: Console) -> int:
    from recipes.file_kinds import describe_file

    num_failed = 0
    for path in options.files:
        try:
            description = describe_file(path, console.verbose)
        except (ArgonautError, OSError) as fault:
            num_failed += 1
            console.tell(f"error: {one_line(fault)}")
            continue
        if options.json:
            print(json.dumps(description.as_json(path), ensure_ascii=False, default=str))
            continue
        print(f"{path}: {description.kind}")
        width = max((len(name) for name, _ in description.figures), default=0)
        for name, value in description.figures:
            print(f"  {name:{max(width, 10)}} {value}")
    return 0 if not num_failed else 1 if num_failed < len(options.files) else 2


COMMAND = Command("info", InfoOptions, run)
