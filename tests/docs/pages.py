"""Pages of the documentation by name, so that tests do not depend on the folder of a page."""

from pathlib import Path

DOCS = Path(__file__).resolve().parents[2] / "docs"


def page_text(name: str) -> str:
    """The text of the page `name`.md, in whichever folder of docs/ it is."""
    (path,) = DOCS.rglob(f"{name}.md")
    return path.read_text(encoding="utf-8")
