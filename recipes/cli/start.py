"""What the shell starts: `argonaut`, `cntk` and `argon`.

Importing their modules takes a moment.  Nothing but the standard library is imported here, so that Ctrl-C ends that
moment without a traceback, too.
"""

import importlib
import signal
import sys


def argonaut() -> int:
    return _main_of("recipes.cli.main")


def cntk() -> int:
    return _main_of("recipes.cli.cntk")


def argon() -> int:
    return _main_of("recipes.cli.argon.command")


def _main_of(module: str) -> int:
    try:
        main = importlib.import_module(module).main
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 128 + signal.SIGINT  # as recipes.cli.console.run_guarded
    status: int = main()
    return status
