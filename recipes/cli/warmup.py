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

import os
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from readers.common.environment import kernel_directory
from readers.common.faults import counted
from readers.common.files import require_writable
from readers.config.options import Options, option
from readers.errors import ConfigError
from recipes.cli.command import Command, Console


@dataclass(frozen=True, kw_only=True)
class WarmupOptions(Options):
    """Where compiled kernels are kept."""

    cache: Path | None = option(
        None, "directory for the compiled kernels (default: NUMBA_CACHE_DIR, or as above)", metavar="DIR"
    )


def run(options: WarmupOptions, console: Console) -> int:
    if options.cache is not None:
        directory = options.cache.absolute()
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
    with console.progress("steps") as progress:
        num_kernels, is_kept = warm_up(partial(progress, stage="warm up"))
    if not is_kept:
        raise ConfigError(f"{where}: compiled kernels could not be stored; expected space on the disk")
    seconds = time.monotonic() - begin
    print(f"compiled {counted(num_kernels, 'kernel')} in {seconds:.0f} s; they are kept in {where}")
    if options.cache is not None:
        console.tell(f"set NUMBA_CACHE_DIR={where} for the commands that use them")
    return 0


COMMAND = Command("warmup", WarmupOptions, run)
