"""Changes of ELAN files: parts of the text are replaced, and everything else stays as it is."""

import re
from bisect import bisect
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate, count
from pathlib import Path
from xml.sax.saxutils import escape, quoteattr

from readers.common.text import is_count
from readers.errors import FormatError
from readers.results.elan.contents import Contents
from readers.results.elan.parsing import Element
from readers.results.elan.times import SYMBOLIC_ASSOCIATION
from readers.results.tiers import Tier

INCLUDED_IN = "Included_In"
_SUFFIX = re.compile(r"([0-9]{1,15})$")
_INVALID = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # characters that XML cannot hold
STEREOTYPES = {
    "Time_Subdivision": "Time subdivision of parent annotation's time interval, no time gaps allowed within this "
    "interval",
    "Symbolic_Subdivision": "Symbolic subdivision of a parent annotation. Annotations refering to the same parent are "
    "ordered",
    SYMBOLIC_ASSOCIATION: "1-1 association with a parent annotation",
    INCLUDED_IN: "Time alignable annotations within the parent annotation's time interval, gaps are allowed",
}
# Elements of a document in the order of the schema, as far as tiers, types and constraints are added after them.
ORDER = ("HEADER", "TIME_ORDER", "TIER", "LINGUISTIC_TYPE", "LOCALE", "LANGUAGE", "CONSTRAINT")


class Editor:
    """Changes of a document as replaced parts of its text."""

    def __init__(self, document: Element, content: bytes, path: str | Path):
        self.contents = Contents(document, path)
        self.content = content
        self.path = path
        self.edits: list[tuple[int, int, str]] = []  # first byte, byte after the last, new text
        self.inserted: dict[str, list[str]] = {kind: [] for kind in ORDER}  # new elements of the document

    def add(self, tiers: Sequence[Tier]) -> bytes:
        """Return the content with more tiers."""
        contents = self.contents
        properties = {element.attributes.get("NAME"): element for element in contents.header.all("PROPERTY")}
        last_used = properties.get("lastUsedAnnotationId")
        used = int(last_used.text) if last_used is not None and is_count(last_used.text.strip()) else 0
        number = max([used, *_numbers(contents.annotations)])
        slot_number = count(1 + max(_numbers(contents.slots), default=0))
        slots: list[tuple[int, str]] = []
        new_names = set(contents.tiers)
        for tier in tiers:
            if tier.name in new_names:
                raise FormatError(f"{self.path}: tier {tier.name[:60]!r} exists; expected another name")
            if tier.parent and tier.parent not in new_names:
                raise FormatError(
                    f"{self.path}: no tier {tier.parent[:60]!r}; expected the parent of {tier.name[:60]!r}"
                )
            new_names.add(tier.name)
            lines = []
            for interval in tier.intervals:
                number += 1
                names = f"ts{next(slot_number)}", f"ts{next(slot_number)}"
                slots += zip((_milliseconds(interval.start), _milliseconds(interval.end)), names)
                lines.append(
                    f'\n        <ANNOTATION>\n            <ALIGNABLE_ANNOTATION ANNOTATION_ID="a{number}" '
                    f'TIME_SLOT_REF1="{names[0]}" TIME_SLOT_REF2="{names[1]}">\n                <ANNOTATION_VALUE>'
                    f"{_escaped(interval.text)}</ANNOTATION_VALUE>\n            </ALIGNABLE_ANNOTATION>\n"
                    "        </ANNOTATION>"
                )
            self.inserted["TIER"].append(_tier_text(tier, self._type(tier), "".join(lines)))
        self._add_slots(sorted(slots, key=lambda slot: slot[0]))
        if last_used is not None and last_used.text_start >= 0:
            self.edits.append((last_used.text_start, last_used.text_end, str(number)))
        return self._edited()

    def _type(self, tier: Tier) -> str:
        """Return a linguistic type for a tier, which is added to the document unless it has one."""
        constraint = INCLUDED_IN if tier.parent else ""
        types = self.contents.types
        names = (f"{tier.type or 'aligned'}{'' if number == 1 else f'-{number}'}" for number in count(1))
        for name in names:
            if name not in types:
                break
            attributes = types[name].attributes
            is_free = "CONTROLLED_VOCABULARY_REF" not in attributes
            if is_free and attributes.get("CONSTRAINTS", "") == constraint:
                return name
        attributes = {"CONSTRAINTS": constraint} if constraint else {}
        attributes |= {"GRAPHIC_REFERENCES": "false", "LINGUISTIC_TYPE_ID": name, "TIME_ALIGNABLE": "true"}
        types[name] = Element("LINGUISTIC_TYPE", attributes, 0, -1)
        self.inserted["LINGUISTIC_TYPE"].append(f"\n    <LINGUISTIC_TYPE{_attributes(attributes)}/>")
        constraints = self.contents.elements.setdefault("CONSTRAINT", [])
        if constraint and constraint not in [element.attributes.get("STEREOTYPE") for element in constraints]:
            constraints.append(Element("CONSTRAINT", {"STEREOTYPE": constraint}, 0, -1))
            self.inserted["CONSTRAINT"].append(constraint_text(constraint))
        return name

    def _add_slots(self, slots: Sequence[tuple[int, str]]) -> None:
        """Insert slots, given by time, so that the file has all in the order of time."""
        (order,) = self.contents.elements["TIME_ORDER"]
        texts = [f'<TIME_SLOT TIME_SLOT_ID="{name}" TIME_VALUE="{time}"/>' for time, name in slots]
        indented = "".join(f"\n        {text}" for text in texts)
        elements = order.all("TIME_SLOT")
        if order.text_start < 0:
            self.edits.append((order.start, order.end, f"<TIME_ORDER>{indented}\n    </TIME_ORDER>"))
            return
        if not elements:
            self.edits.append((order.text_start, order.text_start, indented))
            return
        # Times of slots need not rise in a file; a new one goes before the first that is later.
        values = (self.contents.value(slot) for slot in elements)
        latest = list(accumulate((-1 if value is None else value for value in values), max))
        for (time, _), text in zip(slots, texts):
            position = bisect(latest, time)
            if position < len(elements):
                self.edits.append((elements[position].start, elements[position].start, f"{text}\n        "))
            else:
                self.edits.append((elements[-1].end, elements[-1].end, f"\n        {text}"))

    def _edited(self) -> bytes:
        end = 0  # of the last element of a kind or, without one, where the schema has it
        for kind, texts in self.inserted.items():
            end = max([end, *(element.end for element in self.contents.elements.get(kind, []))])
            self.edits.append((end, end, "".join(texts)))
        pieces = []
        offset = 0
        for first, stop, text in sorted(self.edits, key=lambda edit: edit[0]):  # stable: in the order of insertion
            pieces += [self.content[offset:first], text.encode()]
            offset = stop
        return b"".join([*pieces, self.content[offset:]])


def _tier_text(tier: Tier, kind: str, annotations: str) -> str:
    attributes = {"LINGUISTIC_TYPE_REF": kind, "PARENT_REF": tier.parent, "PARTICIPANT": tier.speaker}
    named = {name: value for name, value in attributes.items() if value} | {"TIER_ID": tier.name}
    closing = f">{annotations}\n    </TIER>" if annotations else "/>"
    return f"\n    <TIER{_attributes(named)}{closing}"


def constraint_text(stereotype: str) -> str:
    attributes = {"DESCRIPTION": STEREOTYPES[stereotype], "STEREOTYPE": stereotype}
    return f"\n    <CONSTRAINT{_attributes(attributes)}/>"


def _attributes(attributes: Mapping[str, str]) -> str:
    return "".join(f" {name}={quoted(value)}" for name, value in attributes.items())


def quoted(text: str) -> str:
    return quoteattr(_INVALID.sub("\ufffd", text))


def _escaped(text: str) -> str:
    return escape(_INVALID.sub("\ufffd", text), {"\r": "&#13;"})


def _milliseconds(seconds: float) -> int:
    return max(0, round(1000 * seconds))


def _numbers(names: Iterable[str]) -> list[int]:
    """Return the numbers at the ends of identifiers."""
    return [int(match[1]) for match in map(_SUFFIX.search, names) if match]
