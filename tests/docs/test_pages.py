"""README and documentation: short where required, valid links, complete tables of contents, imports that work."""

import importlib
import re

import pytest

from tests.docs.pages import page_text
from tests.structure.test_imports import ROOMS, ROOT

README = ROOT / "README.md"
PAGES = [README, *(ROOT / name for name in ("CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "tests/README.md"))]
PAGES += sorted((ROOT / "docs").rglob("*.md")) + sorted((ROOT / "recipes").rglob("*.md"))
PAGES += sorted((ROOT / "benchmarks").rglob("*.md"))
NOTEBOOKS = sorted((ROOT / "docs").rglob("*.ipynb"))
TOCTREE = re.compile(r"```\{toctree\}\n(.*?)```", re.DOTALL)
LINK = re.compile(r"\]\(([^)\s]+)\)")


@pytest.mark.parametrize("page", PAGES, ids=[str(page.relative_to(ROOT)) for page in PAGES])
def test_links_lead_somewhere(page):
    targets = LINK.findall(page.read_text(encoding="utf-8"))
    local = [target.partition("#")[0] for target in targets if not target.startswith(("http:", "https:", "#"))]
    assert [target for target in local if not (page.parent / target).exists()] == []


def test_every_page_is_in_a_table_of_contents():
    """`make docs` builds what the tables of contents reach from docs/index.md."""
    found, new = set(), {ROOT / "docs/index.md"}
    while new:
        found |= new
        new = {entry for path in new for entry in entries(path)} - found
    assert {page for page in [*PAGES, *NOTEBOOKS] if page != README} - found == set()


def entries(path):
    """The pages in the tables of contents of a page."""
    if path.suffix != ".md":
        return
    for block in TOCTREE.findall(path.read_text(encoding="utf-8")):
        for line in block.splitlines():
            name = re.sub(r".*<(.*)>", r"\1", line.strip())
            if name and not name.startswith(":") and not name.startswith("api/"):
                entry = ROOT / name[1:] if name.startswith("/") else path.parent / name
                notebook = entry.with_suffix(".ipynb")
                yield notebook if notebook in NOTEBOOKS else entry.with_suffix(".md")


def test_the_readme_stays_short():
    assert len(README.read_text(encoding="utf-8").splitlines()) <= 130


@pytest.mark.parametrize("page", PAGES, ids=[str(page.relative_to(ROOT)) for page in PAGES])
def test_imports_of_the_python_examples_work(page):
    code = "\n".join(re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL))
    exec("\n".join(re.findall(rf"^(?:from|import) (?:{'|'.join(ROOMS)})\b.*$", code, re.MULTILINE)), {})


def test_the_readme_has_a_python_example():
    assert "\nimport argonaut\n" in README.read_text(encoding="utf-8")


def test_the_functions_of_the_ways_through_the_code_are_there():
    """Each row of a way names a file and a function, class or method in it."""
    rows = re.findall(r"\| `(\S+\.py)` \| `(\S+)` \|$", page_text("architecture"), re.MULTILINE)
    mentioned = re.findall(r"`(\w+)` \(`(\S+\.py)`\)", page_text("architecture"))
    assert len(rows) > 40
    places = rows + [(path, name) for name, path in mentioned]
    assert [place for place in places if not is_defined(*place)] == []


def is_defined(path, name):
    """Whether a module has a function, a class, or a method of a class or of one of its bases."""
    value = importlib.import_module(path.removesuffix(".py").replace("/", "."))
    for part in name.split("."):
        value = getattr(value, part, None)
    return value is not None
