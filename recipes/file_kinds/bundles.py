"""Figures of bundles."""

from typing import TYPE_CHECKING

from recipes.file_kinds.figures import Figures

if TYPE_CHECKING:
    from decoder.recognizer import Bundle


def confidences(bundle: "Bundle") -> Figures:
    """Return how the confidences were calibrated and measured."""
    from decoder.recognizer.assembly import read_calibration

    found = read_calibration(bundle)
    if found is None:
        return [("confidences", "posteriors, not calibrated")]
    share = f"{100 * found.correct / found.words:.1f}% right" if found.words else "none"
    fitted = f"calibrated, {found.method} map, {found.utterances} utterances, {found.words} words, {share}"
    return [("confidences", fitted), *(("confidences", str(one)) for one in found.measured)]


def bundle(path: str) -> Figures:
    """Open the bundle, with its checksums, and return what it says about itself."""
    from decoder.recognizer import Bundle

    opened = Bundle.open(path, verify=True)
    about = opened.description
    options = ", ".join(f"{name} {value:g}" for name, value in about.options.items())
    return [
        ("name", about.name),
        ("language", about.language or "not named"),
        ("licence", about.licence or "not named"),
        ("audio", f"{about.sample_rate} Hz, {about.hcopy.get('TARGETKIND', '')}, window {about.window} frames"),
        ("options", options or "none"),
        *(("errors", str(one)) for one in about.errors),
        *confidences(opened),
        ("members", f"{len(opened.parts)}, {opened.size / 1e6:.1f} MB, checksums correct"),
        *((f"+{name}", f"{part.size} bytes at {part.offset}") for name, part in opened.parts.items()),
        ("made by", about.created_by or "not named"),
        *((f"+{name}", value) for name, value in about.hcopy.items()),
    ]
