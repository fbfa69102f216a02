"""One input: read it as a user would, and say whether it was accepted, refused or shows a fault of the project."""

import os
import traceback
import warnings
from pathlib import Path

from readers.errors import ArgonautError, AudioWarning
from recipes.file_kinds import describe_file
from tests.fuzz.format import Format

ACCEPTED, REFUSED, FINDING = "accepted", "refused", "finding"
DESCRIBED_EVERY = 4  # every fourth input also goes through `argonaut info`


def examine(form: Format, path: Path, number: int = 0) -> tuple[str, str, str]:
    """Return (outcome, kind of finding, traceback): the last two are empty if there is nothing to find."""
    warned: list[tuple[str, str]] = []

    def note(message, category, filename, lineno, file=None, line=None):
        place = f"{_short(filename)}:{lineno}"
        warned.append((f"{category.__name__} at {place}: {message}", "".join(traceback.format_stack()[:-1])))

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.simplefilter("ignore", ResourceWarning)  # raised later, in any line, for files that nobody closed
        warnings.simplefilter("ignore", AudioWarning)  # notes for users, such as bytes after the samples
        warnings.showwarning = note
        outcome, kind, trace = _outcome(form.use, path)
        if outcome != FINDING and number % DESCRIBED_EVERY == 0:
            described, kind, trace = _outcome(lambda path: describe_file(str(path), verbose=1), path)
            if described == FINDING:
                outcome = FINDING
    if outcome != FINDING and warned:
        return FINDING, *warned[0]
    return outcome, kind, trace


def _outcome(use, path: Path) -> tuple[str, str, str]:
    try:
        use(path)
        return ACCEPTED, "", ""
    except ArgonautError as fault:
        message = str(fault)
        if not message.strip() or "\n" in message:
            return FINDING, f"message of several lines at {_place(fault)}", traceback.format_exc()
        return REFUSED, "", ""
    except OSError as fault:  # for instance, a file named in another one does not exist
        if fault.filename is not None:
            return REFUSED, "", ""
        return FINDING, f"{type(fault).__name__} at {_place(fault)}", traceback.format_exc()
    except (Exception, SystemExit) as fault:
        return FINDING, f"{type(fault).__name__} at {_place(fault)}", traceback.format_exc()[-20_000:]


def _place(fault: BaseException) -> str:
    """The innermost line of the project, or of a library if there is none, that raised an exception."""
    frames = traceback.extract_tb(fault.__traceback__)
    own = [frame for frame in frames if "site-packages" not in frame.filename and "/lib/python" not in frame.filename]
    frame = (own or frames)[-1]
    return f"{_short(frame.filename)}:{frame.lineno}"


def _short(filename: str) -> str:
    return os.path.relpath(filename) if "site-packages" not in filename else filename.rpartition("site-packages/")[2]
