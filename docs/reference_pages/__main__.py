"""python -m docs.reference_pages [--check]"""

import argparse
import sys
from pathlib import Path

from docs.reference_pages.document import pages
from readers.common.files import atomic_write

DIRECTORY = Path("docs/reference")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit status 1 if a page is stale")
    check = parser.parse_args().check
    stale = False
    for name, text in pages().items():
        path = DIRECTORY / f"{name}.md"
        if not check:
            with atomic_write(path, "w") as file:
                file.write(text)
        elif not path.is_file() or path.read_text(encoding="utf-8") != text:
            print(f"{path}: stale; run python -m docs.reference_pages")
            stale = True
    return int(stale)


if __name__ == "__main__":
    sys.exit(main())
