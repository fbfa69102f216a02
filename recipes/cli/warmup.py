"""Compile all kernels ahead of time, so that no later command has to wait for the compiler.

worked example: after an installation
  argonaut warmup
prints progress and, after about a minute, a line such as
  compiled 260 kernels in 69 s; they are kept in /home/me/.cache/numba
Without it, each command compiles what it needs when it runs for the first time.  A second warmup compiles nothing and
takes some seconds.  Run it again after an upgrade of Argonaut or numba, and on each type of processor.

Kernels are kept in the first of these directories that is writable: NUMBA_CACHE_DIR, that of the program, the user's
cache directory.  With --cache DIR they are kept in DIR; set NUMBA_CACHE_DIR=DIR for the commands that use them.  The
commands only read: they need no permission to write.
Exit status: 2 if the kernels could not be stored.
"""

import argparse
import os
import sys
import time
from pathlib import Path

from readers.common.environment import kernel_directory
from readers.common.files import require_writable
from readers.errors import ConfigError
from recipes.cli.console import progress_display


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--cache", metavar="DIR", help="directory for the compiled kernels (default: NUMBA_CACHE_DIR, or as above)"
    )


def run(arguments: argparse.Namespace) -> int:
    if arguments.cache is not None:
        directory = Path(arguments.cache).absolute()
        require_writable(directory / "kernel")
        os.environ["NUMBA_CACHE_DIR"] = str(directory)  # read when numba is imported, here and in worker processes
    begin = time.monotonic()
    from readers.common.kernels import kernel_cache
    from recipes.warmup.run import warm_up

    cache, is_writable = kernel_cache()
    where = kernel_directory(cache)
    if not is_writable:
        raise ConfigError(
            f"{where}: compiled kernels cannot be stored, neither here nor in the user's cache directory; "
            "expected --cache DIR, a writable directory"
        )
    with progress_display("warm up", "steps") as progress:
        num_kernels, is_kept = warm_up(progress)
    if not is_kept:
        raise ConfigError(f"{where}: compiled kernels could not be stored; expected space on the disk")
    seconds = time.monotonic() - begin
    print(f"compiled {num_kernels} kernel{'s' * (num_kernels != 1)} in {seconds:.0f} s; they are kept in {where}")
    if arguments.cache is not None:
        print(f"set NUMBA_CACHE_DIR={where} for the commands that use them", file=sys.stderr)
    return 0
