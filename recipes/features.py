"""Lists of feature files for training and decoding."""

from collections.abc import Iterable
from pathlib import Path

from readers.common.report import RunReport
from readers.errors import FormatError
from readers.htk.parameter_file import read_htk_header
from readers.htk.scp import ScpEntry, write_scp


def write_feature_list(scp: Path, files: Iterable[tuple[str, Path]]) -> RunReport:
    """Write `name.ext=path[0,last]` for every (utterance name, HTK feature file) that can be read.

    blockRandomize needs the frame range (CNTK book, 3.4.2).  Missing and damaged files are reported.
    """
    report = RunReport("feature files")
    entries = []
    for name, path in files:
        try:
            header = read_htk_header(path)
        except FileNotFoundError:
            report.skip(name, f"{path}: no such file")
        except FormatError as fault:
            report.fail(name, str(fault))
        else:
            entries.append(ScpEntry(f"{name}{path.suffix}", str(path), 0, header.num_frames - 1))
            report.done()
    write_scp(scp, entries)
    return report
