"""python -m recipes.reference [--check]"""

import argparse
import sys
from pathlib import Path

from readers.common.files import atomic_write
from recipes.reference.document import reference

PATH = Path("docs/reference.md")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit status 1 when the file is stale")
    check = parser.parse_args().check
    text = reference()
    if check:
        fresh = PATH.is_file() and PATH.read_text(encoding="utf-8") == text
        print(f"{PATH}: {'as the code has it' if fresh else 'stale; python -m recipes.reference writes it anew'}")
        return 0 if fresh else 1
    with atomic_write(PATH, "w") as file:
        file.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
