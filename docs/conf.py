"""Sphinx configuration: `make docs` builds the site into build/docs.

The source directory is the root of the repository: the pages of the recipes, CONTRIBUTING.md and its like belong
to the site, and every relative link works both there and in a file browser.
"""

import sys
import tomllib
from pathlib import Path

from docutils.utils import urischemes
from pygments.lexer import RegexLexer
from pygments.token import Comment, Keyword, Name, Operator, Punctuation, String, Text

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
sys.path.insert(0, str(ROOT / "docs"))

from api_pages import write_api_pages  # noqa: E402

project = "Argonaut"
author = "The Argonaut authors"
copyright = author
release = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]

nitpicky = True
nitpick_ignore_regex = [
    ("py:class", r"(?!(readers|features|acoustic|decoder)\.).*"),  # types of Python and numpy
    ("py:class", r".*\.(T|Item|Answer|Result|Opened|Kernel|Entry|Table|File|Target|AnyConfig)"),  # type variables
]

root_doc = "docs/index"
include_patterns = ["docs/**.md", "docs/**.rst", "docs/**.ipynb", "recipes/**.md", "benchmarks/**.md"]
include_patterns += ["tests/README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"]
exclude_patterns = [
    ".venv",
    ".git",
    "build",
    "exp",
    "readers",
    "features",
    "acoustic",
    "decoder",
]

extensions = ["myst_nb", "sphinx.ext.autodoc", "numpydoc"]
nb_execution_mode = "off"  # notebooks are shown with their stored outputs; the tests run them
myst_heading_anchors = 3
highlight_language = "text"
default_role = "code"
urischemes.schemes.pop("file")  # "file:line" in a docstring is not an address
smartquotes = False
toc_object_entries_show_parents = "hide"

autodoc_default_options = {"members": True, "member-order": "bysource"}
autodoc_preserve_defaults = True
autodoc_typehints_format = "short"
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 100
numpydoc_show_class_members = False

html_theme = "furo"
html_title = f"Argonaut {release}"
html_copy_source = False
html_static_path = ["static"]
html_css_files = ["site.css"]


class ConfigurationLexer(RegexLexer):
    """Highlights configurations, network descriptions (NDL) and editing scripts (MEL)."""

    name = "CNTK configuration"
    aliases = ("cntk", "ndl", "mel")
    tokens = {  # noqa: RUF012
        "root": [
            (r"#.*$|//.*$", Comment.Single),
            (r'"[^"\n]*"', String),
            (r"\$[\w.]+\$", Name.Variable),
            (r"[\w.]+(?=\s*=)", Name.Attribute),
            (r"[A-Za-z_]\w*(?=\()", Name.Function),
            (r"\b(load|ndlMnemonic)\b", Keyword),
            (r"[=:;]", Operator),
            (r"[\[\](),{}]", Punctuation),
            (r"\S", Text),
            (r"\s+", Text),
        ]
    }


class PlainLexer(RegexLexer):
    """HTK's label and script files as plain text."""

    name = "HTK file"
    aliases = ("mlf", "scp", "states")
    tokens = {"root": [(r".+\n?|\n", Text)]}  # noqa: RUF012


def write_front_page(app, failed):
    """Forward index.html to the index of docs/."""
    if not failed and app.builder.format == "html":
        page = '<!DOCTYPE html><title>Argonaut</title><meta http-equiv="refresh" content="0; url=docs/index.html">\n'
        (Path(app.outdir) / "index.html").write_text(page, encoding="utf-8")


def hide_factories(app, kind, name, value, options, signature, returned):
    """Show `= ...` in place of a dataclass's `= <factory>`, which is not Python."""
    return signature and signature.replace("<factory>", "..."), returned


def skip_tuple_fields(app, kind, name, value, skip, options):
    """Leave out the attributes of named tuples: the class describes them."""
    return True if type(value).__name__ == "_tuplegetter" else None


def setup(app):
    app.connect("autodoc-process-signature", hide_factories)
    app.connect("autodoc-skip-member", skip_tuple_fields)
    for alias in ConfigurationLexer.aliases:
        app.add_lexer(alias, ConfigurationLexer)
    for alias in PlainLexer.aliases:
        app.add_lexer(alias, PlainLexer)
    write_api_pages(ROOT / "docs/reference/api")
    app.connect("build-finished", write_front_page)
