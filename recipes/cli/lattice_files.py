"""What the actions of `argonaut lattice` share: reading the lattices of an index, checks of outputs, and labels."""

import argparse
import math
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from readers.common.report import RunReport
from readers.errors import ArgonautError, ConfigError
from readers.htk.units import TICKS_PER_SECOND
from recipes.cli.lm_network import read_index

NOTHING = "nothing"  # stands for the name of a file that was not written


def each_lattice(arguments: argparse.Namespace, work: Callable[[str, Any], Any]) -> tuple[dict[str, Any], RunReport]:
    """Return utterance -> work(utterance, lattice), and a report of the lattices for which work failed."""
    from readers.htk.slf import read_slf
    from recipes.cli.console import one_line, progress_display, show_losses

    entries = read_index(arguments.lattices)
    report, found = RunReport("lattices"), {}
    with progress_display("lattices", "lattices") as show:
        for done, (name, path) in enumerate(entries, 1):
            try:
                found[name] = work(name, read_slf(path))
                report.done()
            except (ArgonautError, OSError) as fault:
                report.fail(name, one_line(fault))
            show(done, len(entries))
    if arguments.report:
        report.write(arguments.report)
    show_losses(report, arguments.report, arguments.verbose, arguments.lattices)
    return found, report


def lattice_files(arguments: argparse.Namespace) -> list[Path]:
    """Return the files that --lattices and --with name, and the lattice files that these list."""
    indices = [arguments.lattices, *getattr(arguments, "others", ())]
    return [path for index in indices for path in (Path(index), *(path for _, path in read_index(index)))]


def check_outputs(arguments: argparse.Namespace, *paths: str | None) -> None:
    """Raise an error unless all outputs and the report can be written and none of them is an input."""
    from readers.common.files import require_writable

    read = [*lattice_files(arguments), *(getattr(arguments, name, None) for name in ("reference", "lm"))]
    for path in filter(None, (*paths, arguments.report)):
        require_writable(path, read)


def other_index(arguments: argparse.Namespace) -> str:
    """Return the index file of --prefix; raises ConfigError if it is that of the input lattices."""
    index = f"{arguments.prefix}.index"
    read = {path.resolve() for path in lattice_files(arguments)}
    written = [index, *(f"{arguments.prefix}{number}.lat" for number in range(1, len(read)))]
    if any(Path(path).resolve() in read for path in written):
        raise ConfigError(
            f"command line: --prefix {arguments.prefix}: would overwrite --lattices; expected another prefix"
        )
    return index


def write_labels(path: str, found: Mapping[str, Iterable[Any]]) -> None:
    """Write words and confidences (Word) of each utterance to an MLF; unknown times are left out."""
    from readers.htk.mlf import Label, write_mlf

    def ticks(seconds: float) -> int | None:
        return None if math.isnan(seconds) else round(seconds * TICKS_PER_SECOND)

    labels = (
        (f"*/{name}.rec", [Label(ticks(w.start), ticks(w.end), w.text, w.confidence) for w in words])
        for name, words in found.items()
    )
    write_mlf(path, labels)
