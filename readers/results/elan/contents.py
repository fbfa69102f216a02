"""What the elements of an ELAN file say: tiers with the times of their annotations, vocabularies and languages."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from readers.common.text import canonical, is_count
from readers.errors import FormatError
from readers.results.elan.parsing import EXPECTED, Element
from readers.results.elan.times import SYMBOLIC_ASSOCIATION, SlotTimes, Span, in_sequence, parts_of
from readers.results.tiers import Interval, Tier


class Contents:
    """What the elements of a document say."""

    def __init__(self, document: Element, path: str | Path):
        self.document = document
        self.path = path
        self.elements: dict[str, list[Element]] = {}
        for member in document.members:
            self.elements.setdefault(member.name, []).append(member)
        orders = self.elements.get("TIME_ORDER", [])
        if len(orders) != 1:
            raise FormatError(f"{path}:{document.line}: {len(orders)} elements TIME_ORDER; {EXPECTED} with one")
        header = next(iter(self.elements.get("HEADER", [])), Element("HEADER", {}, 1, 0))
        units = header.attributes.get("TIME_UNITS", "milliseconds")
        if units != "milliseconds":
            raise FormatError(f"{path}:{header.line}: times in {units[:40]!r}; expected milliseconds")
        self.header = header
        self.slots = self._by_name(orders[0].all("TIME_SLOT"), "TIME_SLOT_ID")
        self.types = self._by_name(self.elements.get("LINGUISTIC_TYPE", []), "LINGUISTIC_TYPE_ID")
        self.tiers = self._by_name(self.elements.get("TIER", []), "TIER_ID")
        self.annotations = self._by_name(
            (annotation for tier in self.tiers.values() for annotation in annotations_of(tier)), "ANNOTATION_ID"
        )

    def where(self, element: Element) -> str:
        return f"{self.path}:{element.line}"

    def required(self, element: Element, attribute: str) -> str:
        value = element.attributes.get(attribute, "")
        if not value:
            raise FormatError(f"{self.where(element)}: {element.name} without {attribute}; expected one")
        return value

    def reference(self, element: Element, attribute: str, to: Mapping[str, Element]) -> str:
        name = self.required(element, attribute)
        if name not in to:
            raise FormatError(
                f"{self.where(element)}: {attribute} {name[:60]!r} of {element.name} refers to nothing; expected an "
                "identifier of this file"
            )
        return name

    def _by_name(self, elements: Iterable[Element], attribute: str) -> dict[str, Element]:
        named: dict[str, Element] = {}
        for element in elements:
            name = self.required(element, attribute)
            if name in named:
                raise FormatError(
                    f"{self.where(element)}: {attribute} {name[:60]!r} is also on line {named[name].line}; expected "
                    "each identifier once"
                )
            named[name] = element
        return named

    def table(self, kind: str, attribute: str, value: str) -> dict[str, str]:
        """Return the value of an attribute of all elements of a kind by their identifiers."""
        elements = self.elements.get(kind, [])
        return {self.required(element, attribute): element.attributes.get(value, "") for element in elements}

    def timed_tiers(self) -> tuple[Tier, ...]:
        """Return the tiers with the times of their annotations."""
        times = SlotTimes({name: self.value(slot) for name, slot in self.slots.items()})
        spans: dict[str, Span] = {}
        for tier in self._parents_first():
            self._time(tier, times, spans)
        return tuple(self._tier(name, tier, spans) for name, tier in self.tiers.items())

    def value(self, slot: Element) -> int | None:
        value = slot.attributes.get("TIME_VALUE")
        if value is not None and not is_count(value):
            raise FormatError(f"{self.where(slot)}: TIME_VALUE {value[:40]!r}; expected milliseconds from 0")
        return None if value is None else int(value)

    def _parents_first(self) -> Iterator[Element]:
        """Yield the tiers, each after that on which it depends."""
        children: dict[str, list[str]] = {}
        for name, tier in self.tiers.items():
            depends = bool(tier.attributes.get("PARENT_REF"))
            children.setdefault(self.reference(tier, "PARENT_REF", self.tiers) if depends else "", []).append(name)
        waiting = children.pop("", [])
        while waiting:
            name = waiting.pop()
            yield self.tiers[name]
            waiting += children.pop(name, [])
        if children:
            tier = self.tiers[next(iter(children.values()))[0]]
            name = tier.attributes["TIER_ID"]
            raise FormatError(
                f"{self.where(tier)}: tier {name[:60]!r} depends on itself; expected PARENT_REF to lead to an "
                "independent tier"
            )

    def _time(self, tier: Element, times: SlotTimes, spans: dict[str, Span]) -> None:
        """Find the times of a tier's annotations."""
        constraint = ""
        if tier.attributes.get("LINGUISTIC_TYPE_REF"):
            kind = self.types[self.reference(tier, "LINGUISTIC_TYPE_REF", self.types)]
            constraint = kind.attributes.get("CONSTRAINTS", "")
        aligned: dict[str, tuple[str, str]] = {}
        siblings: dict[str, list[str]] = {}
        previous: dict[str, str] = {}
        for annotation in annotations_of(tier):
            name = annotation.attributes["ANNOTATION_ID"]
            if annotation.name == "ALIGNABLE_ANNOTATION":
                first, last = (self.reference(annotation, f"TIME_SLOT_REF{number}", self.slots) for number in (1, 2))
                aligned[name] = first, last
                continue
            parent = self.reference(annotation, "ANNOTATION_REF", self.annotations)
            if parent not in spans or parent in aligned or parent in previous:
                raise FormatError(
                    f"{self.where(annotation)}: ANNOTATION_REF {parent[:60]!r} is no annotation of the parent tier; "
                    f"expected one of {tier.attributes.get('PARENT_REF', 'a parent tier')[:60]!r}"
                )
            siblings.setdefault(parent, []).append(name)
            if annotation.attributes.get("PREVIOUS_ANNOTATION"):
                previous[name] = self.reference(annotation, "PREVIOUS_ANNOTATION", self.annotations)
        times.fill(list(aligned.values()))
        for name, pair in aligned.items():
            spans[name] = times.span(*pair)
            if spans[name].start > spans[name].end:
                raise FormatError(
                    f"{self.where(self.annotations[name])}: from {spans[name].start:g} to {spans[name].end:g} ms; "
                    "expected an annotation that ends after its beginning"
                )
        for parent, names in siblings.items():
            ordered = in_sequence(names, previous)
            if len(ordered) < len(names):
                lost = next(name for name in names if name not in set(ordered))
                raise FormatError(
                    f"{self.where(self.annotations[lost])}: PREVIOUS_ANNOTATION {previous[lost][:60]!r} is no "
                    "earlier annotation with the same ANNOTATION_REF; expected one"
                )
            parts = parts_of(spans[parent], len(names), constraint == SYMBOLIC_ASSOCIATION)
            spans.update(zip(ordered, parts, strict=True))

    def _tier(self, name: str, tier: Element, spans: Mapping[str, Span]) -> Tier:
        intervals = []
        for annotation in annotations_of(tier):
            start, end, divides = spans[annotation.attributes["ANNOTATION_ID"]]
            text = "".join(value.text for value in annotation.all("ANNOTATION_VALUE"))
            intervals.append(
                Interval(
                    start / 1000,
                    end / 1000,
                    canonical(text),
                    annotation.line,
                    None if divides is None else (divides[0] / 1000, divides[1] / 1000),
                )
            )
        attributes = tier.attributes
        speaker = canonical(" ".join(attributes.get("PARTICIPANT", "").split()))
        about = attributes.get("PARENT_REF", ""), speaker, attributes.get("LINGUISTIC_TYPE_REF", "")
        return Tier(name, False, tuple(sorted(intervals, key=lambda one: (one.start, one.end))), *about)


def annotations_of(tier: Element) -> Iterator[Element]:
    """Yield the annotations of a tier, ALIGNABLE_ANNOTATION and REF_ANNOTATION."""
    for annotation in tier.all("ANNOTATION"):
        for member in annotation.members:
            if member.name in ("ALIGNABLE_ANNOTATION", "REF_ANNOTATION"):
                yield member
