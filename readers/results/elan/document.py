"""Reads and changes ELAN's annotation files (.eaf).

A change edits the text of the file where it must and leaves every other byte: vocabularies, languages, external
references, properties, comments, layout.  A document without a change is the file, byte by byte.

References
----------
ELAN Annotation Format, schema EAFv3.0 (http://www.mpi.nl/tools/elan/EAFv3.0.xsd), and versions from 2.0.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

from readers.common.files import write_content
from readers.common.report import Figures
from readers.errors import FormatError
from readers.results.elan.contents import Contents
from readers.results.elan.editing import STEREOTYPES, Editor, constraint_text, quoted
from readers.results.elan.parsing import EXPECTED, MOST_BYTES, encoded, parse
from readers.results.tiers import Tier

_EMPTY = """<?xml version="1.0" encoding="UTF-8"?>
<ANNOTATION_DOCUMENT AUTHOR="" DATE="{date}" FORMAT="3.0" VERSION="3.0" xmlns:xsi="http://www.w3.org/2001/XMLSchema-\
instance" xsi:noNamespaceSchemaLocation="http://www.mpi.nl/tools/elan/EAFv3.0.xsd">
    <HEADER MEDIA_FILE="" TIME_UNITS="milliseconds">{media}
        <PROPERTY NAME="lastUsedAnnotationId">0</PROPERTY>
    </HEADER>
    <TIME_ORDER>
    </TIME_ORDER>{constraints}
</ANNOTATION_DOCUMENT>
"""
_MIME_TYPES = {".wav": "audio/x-wav", ".mp3": "audio/mpeg", ".flac": "audio/flac", ".ogg": "audio/ogg"}


@dataclass(frozen=True)
class ElanDocument:
    """An annotation file.

    Attributes
    ----------
    path : str or Path
        For messages.
    raw : bytes
        The file.
    tiers : tuple of Tier
        In the order of the file.
    media : tuple of str
        Addresses of the recordings.
    languages : dict of str to str
        Name by identifier.
    vocabularies : tuple of str
        Identifiers of the controlled vocabularies.
    """

    path: str | Path
    raw: bytes
    tiers: tuple[Tier, ...]
    media: tuple[str, ...] = ()
    languages: dict[str, str] = field(default_factory=dict)
    vocabularies: tuple[str, ...] = ()

    @classmethod
    def parse(cls, raw: bytes, path: str | Path) -> Self:
        """Return the document of a file's bytes.

        Raises
        ------
        FormatError
            With file and line, for what is no sound ELAN file.
        """
        document, _ = parse(raw, path)
        contents = Contents(document, path)
        return cls(
            path,
            raw,
            contents.timed_tiers(),
            tuple(element.attributes.get("MEDIA_URL", "") for element in contents.header.all("MEDIA_DESCRIPTOR")),
            contents.table("LANGUAGE", "LANG_ID", "LANG_LABEL"),
            tuple(contents.table("CONTROLLED_VOCABULARY", "CV_ID", "DESCRIPTION")),
        )

    @classmethod
    def empty(cls, path: str | Path, audio: Path | None = None) -> Self:
        """Return a document without tiers.

        Parameters
        ----------
        path : path
            Where it will be written.
        audio : Path, optional
            The recording.
        """
        media = ""
        if audio is not None:
            relative = os.path.relpath(audio, Path(path).parent)
            kind = _MIME_TYPES.get(audio.suffix.lower(), "audio/x-wav")
            media = (
                f"\n        <MEDIA_DESCRIPTOR MEDIA_URL={quoted(audio.absolute().as_uri())} "
                f"MIME_TYPE={quoted(kind)} RELATIVE_MEDIA_URL={quoted(relative)}/>"
            )
        constraints = "".join(map(constraint_text, STEREOTYPES))
        date = datetime.now(UTC).isoformat(timespec="seconds")
        return cls.parse(_EMPTY.format(date=date, media=media, constraints=constraints).encode(), path)

    def write(self, path: str | Path) -> None:
        """Write the document to a file."""
        write_content(path, self.raw)

    def with_tiers(self, tiers: Sequence[Tier]) -> Self:
        """Return the document with more tiers, of annotations with times.

        Parameters
        ----------
        tiers : sequence of Tier
            A tier with a parent, an earlier one or one of the document, becomes `Included_In` it.  A type of the
            document with the name of `type` is used if it fits.  Times are rounded to milliseconds.

        Raises
        ------
        FormatError
            For a name that the document has, and a parent that it does not have.
        """
        document, content = parse(self.raw, self.path)
        return type(self).parse(encoded(Editor(document, content, self.path).add(tiers), self.raw), self.path)


def read_elan(path: str | Path) -> ElanDocument:
    """Read an ELAN annotation file.

    Parameters
    ----------
    path : path
        In UTF-8, or in UTF-16 with a byte order mark.

    Returns
    -------
    ElanDocument

    Raises
    ------
    FormatError
        With file and line, for what is no sound ELAN file: XML that is not well-formed or has a document type
        declaration; identifiers that are missing, occur twice or refer to nothing; annotations that end before they
        begin.
    OSError
    """
    if Path(path).stat().st_size > MOST_BYTES:
        raise FormatError(f"{path}: {Path(path).stat().st_size} bytes; {EXPECTED} of at most {MOST_BYTES}")
    return ElanDocument.parse(Path(path).read_bytes(), path)


def summary(path: str) -> Figures:
    """Return the figures of a file for `argonaut info`."""
    document = read_elan(path)
    intervals = [interval for tier in document.tiers for interval in tier.intervals]
    dependent = sum(1 for tier in document.tiers if tier.parent)
    return [
        ("tiers", ", ".join(tier.name for tier in document.tiers) or "none"),
        ("dependent tiers", dependent),
        ("annotations", len(intervals)),
        ("without times", f"{sum(interval.divides is not None for interval in intervals)} interpolated"),
        ("ends at", f"{max((interval.end for interval in intervals), default=0.0):.2f} s"),
        ("media", ", ".join(document.media) or "none"),
        ("vocabularies", ", ".join(document.vocabularies) or "none"),
        ("+languages", ", ".join(document.languages) or "none"),
    ]
