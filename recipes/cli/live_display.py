"""Shows what is recognised while audio arrives: as text, with the partial result on a terminal, or as JSON."""

import json
import os
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING

from readers.common.report import RunReport
from readers.results.timed_words import label_objects

if TYPE_CHECKING:
    from decoder.results.live_recognition import RecognitionEvent


class TextDisplay:
    """Prints a line for each utterance that has ended, unless a grammar rejects it.

    With `times`, the start and the end of its words come first.
    """

    def __init__(self, times: bool):
        self.times = times
        self.live = sys.stderr.isatty()

    def __call__(self, event: "RecognitionEvent") -> None:
        self.below("" if event.is_final else event.text)
        if event.is_final and event.words and event.accepted is not False:
            times = f"{event.words[0].start:.2f} {event.words[-1].end:.2f} " if self.times else ""
            print(f"{times}{event.text}", flush=True)

    def below(self, text: str) -> None:
        """Replace the partial result on the terminal by the end of this text."""
        if self.live:
            width = max(os.get_terminal_size(sys.stderr.fileno()).columns - 1, 20)
            print(f"\r\033[K{text[-width:]}", end="", file=sys.stderr, flush=True)

    def close(self, report: RunReport, num_frames: int, factor: float) -> None:
        self.below("")
        if self.times:
            print(f"{report.summary()}; frames {num_frames}; real-time factor {factor:.3f}")


class JsonDisplay:
    """Prints JSON objects."""

    def __call__(self, event: "RecognitionEvent") -> None:
        times = {"start": round(event.start, 3), "end": round(event.end, 3)}
        if not event.is_final:
            self.line({"type": "partial", **times, "stable": event.stable, "unstable": event.unstable})
            return
        meaning: dict[str, object] = {}
        if event.accepted is not None:
            from decoder.grammars.slots import judgement_object, slot_objects

            meaning = judgement_object(event.accepted, event.grammar_score)
            meaning |= {"slots": slot_objects(event.slots)} if event.slots else {}
        reason = {"reason": event.reason} if event.reason else {}
        words = label_objects("word", event.words)
        self.line({"type": "final", **times, "text": event.text, "words": words, **meaning, **reason})

    def close(self, report: RunReport, num_frames: int, factor: float) -> None:
        counts = {"done": report.num_done, "skipped": report.num_skipped, "failed": report.num_failed}
        counts["unfinished"] = report.num_unfinished
        self.line({"type": "end", "utterances": counts, "frames": num_frames, "real_time_factor": round(factor, 4)})

    @staticmethod
    def line(content: Mapping[str, object]) -> None:
        print(json.dumps(content, ensure_ascii=False), flush=True)
