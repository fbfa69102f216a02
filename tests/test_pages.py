"""README and the pages: short where they must be, links that lead somewhere, imports that work."""

import re

import pytest

from tests.test_imports import ROOT

README = ROOT / "README.md"
PAGES = [README, ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
PAGES += sorted((ROOT / "recipes").rglob("*.md"))
LINK = re.compile(r"\]\(([^)\s]+)\)")


@pytest.mark.parametrize("page", PAGES, ids=[str(page.relative_to(ROOT)) for page in PAGES])
def test_links_lead_somewhere(page):
    targets = LINK.findall(page.read_text(encoding="utf-8"))
    local = [target.partition("#")[0] for target in targets if not target.startswith(("http:", "https:", "#"))]
    assert [target for target in local if not (page.parent / target).exists()] == []


def test_the_readme_stays_short():
    assert len(README.read_text(encoding="utf-8").splitlines()) <= 130


def test_what_the_readme_imports_is_there():
    (code,) = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    imports = [line for line in code.splitlines() if line.startswith(("from ", "import "))]
    assert len(imports) > 5
    exec("\n".join(imports), {})
