"""The XML of an ELAN file: its elements with their attributes, lines and places in the file.

Expat reports what it reads; nothing is read from elsewhere.  A document type declaration, with which XML defines
entities, is refused: ELAN writes none.
"""

import codecs
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn
from xml.parsers import expat

from readers.common.text import UTF16_MARKS
from readers.errors import FormatError

EXPECTED = "expected an annotation file of ELAN"
MOST_BYTES = 1 << 25  # an hour of speech with words and phones has 15 million
MOST_ELEMENTS = 1 << 20  # as of 200,000 annotations; each takes a few hundred bytes of memory
DEEPEST = 16  # elements within another; ELAN writes five
ENCODINGS = ("utf-8", "utf-16", "us-ascii")
_TAG = re.compile(rb"""<(?:[^"'>]++|"[^"]*+"|'[^']*+')*+>""")
# Elements whose text is kept.
WITH_TEXT = ("ANNOTATION_VALUE", "PROPERTY", "CV_ENTRY", "CVE_VALUE")


@dataclass(slots=True)
class Element:
    """An element.

    Attributes
    ----------
    name : str
    attributes : dict of str to str
    line : int
        Of its beginning, counted from 1.
    start, end : int
        Bytes of the file, end exclusive.
    text_start, text_end : int
        Bytes between its tags; -1 of an element without an end tag.
    text : str
        Of the elements WITH_TEXT.
    members : list of Element
        Annotations of a tier, entries of a vocabulary, and so on.
    """

    name: str
    attributes: dict[str, str]
    line: int
    start: int
    end: int = -1
    text_start: int = -1
    text_end: int = -1
    text: str = ""
    members: list["Element"] = field(default_factory=list)

    def all(self, name: str) -> list["Element"]:
        """Return the members of a name."""
        return [member for member in self.members if member.name == name]


def parse(raw: bytes, path: str | Path) -> tuple[Element, bytes]:
    """Return the document element of an ELAN file, and the file's text as the UTF-8 that places refer to.

    Raises
    ------
    FormatError
        With file and line, for what is no well-formed XML, has a document type declaration, or is no ELAN file.
    """
    if len(raw) > MOST_BYTES:
        raise FormatError(f"{path}: {len(raw)} bytes; {EXPECTED} of at most {MOST_BYTES}")
    content = raw
    if raw.startswith(UTF16_MARKS):
        try:
            content = raw.decode("utf-16").encode()
        except UnicodeError as fault:
            raise FormatError(f"{path}: damaged UTF-16; {EXPECTED}") from fault
    return _Parser(content, path).document, content


class _Parser:
    def __init__(self, content: bytes, path: str | Path):
        self.path = path
        self.content = content
        self.open: list[Element] = []
        self.num_elements = 0
        self.pieces: list[str] = []
        self.parser = expat.ParserCreate("utf-8")  # whatever the declaration says, which _declared has checked
        self.parser.buffer_text = True
        self.parser.SetParamEntityParsing(expat.XML_PARAM_ENTITY_PARSING_NEVER)
        self.parser.XmlDeclHandler = self._declared
        self.parser.StartDoctypeDeclHandler = self._refuse_doctype
        self.parser.StartElementHandler = self._begin
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._text
        self.document: Element = Element("", {}, 1, 0)
        try:
            self.parser.Parse(content, True)
        except expat.ExpatError as fault:
            reason = expat.ErrorString(fault.code)
            raise FormatError(f"{path}:{fault.lineno}: XML of ELAN: {reason}; {EXPECTED}") from fault

    def _refuse(self, message: str) -> NoReturn:
        raise FormatError(f"{self.path}:{self.parser.CurrentLineNumber}: {message}")

    def _declared(self, version: str, encoding: str | None, standalone: int) -> None:
        if encoding is not None and encoding.lower() not in ENCODINGS:
            self._refuse(f"text in encoding {encoding[:40]}; expected UTF-8")

    def _refuse_doctype(self, name: str, system: str | None, public: str | None, has_subset: bool) -> None:
        self._refuse("a document type declaration; expected none, as ELAN writes none")

    def _begin(self, name: str, attributes: dict[str, str]) -> None:
        if not self.open and name != "ANNOTATION_DOCUMENT":
            self._refuse(f"element {name[:40]!r}; {EXPECTED}, whose first element is ANNOTATION_DOCUMENT")
        if len(self.open) == DEEPEST:
            self._refuse(f"element {name[:40]!r} is inside of {DEEPEST} others; {EXPECTED}")
        self.num_elements += 1
        if self.num_elements > MOST_ELEMENTS:
            self._refuse(f"more than {MOST_ELEMENTS} elements; {EXPECTED} with fewer")
        element = Element(name, attributes, self.parser.CurrentLineNumber, self.parser.CurrentByteIndex)
        if self.open:
            self.open[-1].members.append(element)
        else:
            self.document = element
        self.open.append(element)
        self.pieces = []

    def _text(self, text: str) -> None:
        if self.open[-1].name in WITH_TEXT:
            self.pieces.append(text)

    def _end(self, name: str) -> None:
        element = self.open.pop()
        end_tag = self.parser.CurrentByteIndex
        tag = _TAG.match(self.content, element.start)
        assert tag is not None  # expat has read it
        element.end = tag.end()
        if not tag[0].endswith(b"/>"):
            element.text_start = tag.end()
            element.text_end = end_tag
            element.end = self.content.index(b">", end_tag) + 1
        if name in WITH_TEXT:
            element.text = "".join(self.pieces)
            self.pieces = []


def encoded(content: bytes, raw: bytes) -> bytes:
    """Return UTF-8 text in the encoding of a file with these bytes."""
    if raw.startswith(codecs.BOM_UTF16_LE):
        return codecs.BOM_UTF16_LE + content.decode().encode("utf-16-le")
    if raw.startswith(codecs.BOM_UTF16_BE):
        return codecs.BOM_UTF16_BE + content.decode().encode("utf-16-be")
    return content
