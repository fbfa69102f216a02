"""Read damaged files of every format: python -m tests.fuzz --minutes 60

Each input is made from a valid file of a format, by damage that its seed determines, and read in a worker process with
4 GB of address space and 5 seconds of processor time.  A worker that dies, an exception that is not one of the
project's own, a warning and an input that takes too long are findings.  Their inputs are kept in the directory --out,
each with the traceback, and can be read again with --replay.  Exit status 1 if there are findings.
"""

import argparse
import os
import sys
from pathlib import Path


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.fuzz", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=5.0, help="shared among the formats (default: 5)")
    parser.add_argument("--seed", type=int, default=0, help="choose other inputs (default: 0)")
    parser.add_argument("--format", nargs="+", metavar="NAME", help="only these formats, see --list")
    parser.add_argument("--workers", type=int, default=2, help="processes (default: 2)")
    parser.add_argument("--out", type=Path, default=Path("build/fuzz"), help="where findings are kept (build/fuzz)")
    parser.add_argument("--replay", type=Path, nargs="+", metavar="FILE", help="read inputs again: FORMAT-NUMBER.input")
    parser.add_argument("--list", action="store_true", help="list the formats")
    arguments = parser.parse_args()
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(variable, "1")  # before numpy is imported: more threads would only take address space
    os.environ.setdefault("PYTHONHASHSEED", "0")  # of the workers

    from tests.fuzz.examine import FINDING, examine
    from tests.fuzz.format import file_name, temporary_directory
    from tests.fuzz.formats import FORMATS
    from tests.fuzz.run import Run

    if arguments.list:
        print("\n".join(map(file_name, FORMATS.values())))
        return 0
    if arguments.replay:
        found = 0
        for path in arguments.replay:
            form = next(form for form in FORMATS.values() if file_name(form) == path.name.rpartition("-")[0])
            with temporary_directory() as folder:
                copy = Path(folder) / f"input{form.suffix}"
                copy.write_bytes(path.read_bytes())
                outcome, kind, trace = examine(form, copy)
            found += outcome == FINDING
            print(f"{path}: {outcome} {kind}\n{trace}".strip(), flush=True)
        return 1 if found else 0
    known = {file_name(form): form for form in FORMATS.values()}
    unknown = [name for name in arguments.format or () if name not in known]
    if unknown:
        parser.error(f"no format {', '.join(unknown)}; expected some of {', '.join(known)}")
    run = Run(
        [known[name] for name in arguments.format or known],
        arguments.seed,
        arguments.out,
        lambda line: print(line, flush=True),
    )
    run.run(60 * arguments.minutes, arguments.workers)
    print("\n".join(run.table()))
    return 1 if any(tally.kinds for tally in run.tallies) else 0


if __name__ == "__main__":
    sys.exit(main())
