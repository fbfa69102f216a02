"""The WebSocket protocol of vosk-server.

A client may send {"config": {...}}, then sends audio as binary messages, 16-bit little-endian PCM with one channel, and
at the end {"eof": 1}, as text or as a binary message.  Every block of audio and the end are answered by a JSON object:

- {"partial": "the words so far"}; with "partial_words", also their times in "partial_result";
- {"text": "the words", "result": [{"word", "start", "end", "conf"}]} when an utterance has ended; with a grammar
  also "accepted" and "grammar_score", and if it has tags, "slots": [{"name", "value", "start", "end", "confidence"}];
- {"alternatives": [{"text", "confidence", "result"}]} instead, if "max_alternatives" is above 0; the confidence is the
  mean of those of the words.

If several utterances end within one message, the answer has the words of all.  After the end, or a fault, whose text
comes as {"error": "..."}, the server closes the connection.

References
----------
alphacep/vosk-server, websocket/asr_server.py; alphacep/vosk-api, src/recognizer.cc.
"""

import asyncio
import contextlib
import functools
import json
import logging
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from starlette.websockets import WebSocket, WebSocketDisconnect

from decoder.grammars.slots import judgement_object, slot_objects
from decoder.results.live_recognition import Recognition, RecognitionEvent
from readers.errors import ArgonautError
from readers.language.grammars.network import UNKNOWN
from readers.results.timed_words import Word
from recipes.serve.files.requests import one_line
from recipes.serve.limits import BusyError
from recipes.serve.service import Service, Usage

NORMAL, GOING_AWAY, BAD_DATA, POLICY, INTERNAL, TRY_LATER = 1000, 1001, 1007, 1008, 1011, 1013  # RFC 6455, IANA
MOST_REASON = 123  # bytes of a close frame's reason
STEP = 0.5  # seconds of audio that are decoded at a time
WIDTH = 2  # bytes of a sample
MOST_ALTERNATIVES = 100
MOST_WORDS, MOST_UNKNOWN = 10_000, 100  # in all phrases; the time and memory of their graph grow with both
RATES = 1000.0, 384_000.0
ABORT = "argonaut.abort"  # extension of the scope: drops a connection whose client does not read

logger = logging.getLogger("argonaut.serve")


class ProtocolError(Exception):
    """A message that the protocol does not know."""


@dataclass(frozen=True)
class StreamConfig:
    """What {"config": ...} sets.

    Attributes
    ----------
    sample_rate : float
        Hz.
    words, partial_words : bool
        Whether results and partial results have the times of the words.
    max_alternatives : int
        Number of alternatives; 0 for the best words alone.
    phrase_list : tuple of str
        Phrases that can be recognised; empty for the language model.
    """

    sample_rate: float
    words: bool = True
    partial_words: bool = False
    max_alternatives: int = 0
    phrase_list: tuple[str, ...] = ()

    def updated(self, given: dict[str, Any]) -> "StreamConfig":
        """Return the configuration with new values; unknown names are ignored, as vosk-server ignores them.

        Values of other types are converted as by vosk-server: "16000" is a number.

        Raises ProtocolError for values that cannot be converted, or are out of range.
        """
        values = {}
        for name in SETTINGS.keys() & given.keys():
            convert, fits, expected = SETTINGS[name]
            with contextlib.suppress(TypeError, ValueError, OverflowError):
                values[name] = convert(given[name])
            if name not in values or not fits(values[name]):
                raise ProtocolError(f"config: {name} {json.dumps(given[name])[:60]}; expected {expected}")
        return replace(self, **values)


def _phrases(value: Any) -> tuple[str, ...]:
    """Return the phrases of a list, of a text that contains a list, as programs give it to vosk, or of any other text.

    Raises ValueError for something else.
    """
    if isinstance(value, str):
        with contextlib.suppress(ValueError, RecursionError):
            content = json.loads(value)
            value = content if isinstance(content, list) else value
    phrases = [value] if isinstance(value, str) else value or []
    if not isinstance(phrases, list) or not all(isinstance(phrase, str) for phrase in phrases):
        raise ValueError("no texts")
    return tuple(phrases) if phrases != [""] else ()


def _few_phrases(phrases: tuple[str, ...]) -> bool:
    words = [word for phrase in phrases for word in phrase.split() or [""]]
    return len(words) <= MOST_WORDS and words.count(UNKNOWN) <= MOST_UNKNOWN


# Name -> conversion, which is that of vosk-server, whether the result fits, what is expected.  Any text is true there.
SETTINGS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], bool], str]] = {
    "sample_rate": (float, lambda rate: RATES[0] <= rate <= RATES[1], f"{RATES[0]:.0f} to {RATES[1]:.0f} Hz"),
    "words": (bool, lambda _: True, "true or false"),
    "partial_words": (bool, lambda _: True, "true or false"),
    "max_alternatives": (
        int,
        lambda count: 0 <= count <= MOST_ALTERNATIVES,
        f"a whole number from 0 to {MOST_ALTERNATIVES}",
    ),
    "phrase_list": (
        _phrases,
        _few_phrases,
        f"a list of texts, with at most {MOST_WORDS} words and {MOST_UNKNOWN} {UNKNOWN} in all",
    ),
}


class Session:
    """One client of the WebSocket."""

    def __init__(self, service: Service, socket: WebSocket):
        self.service = service
        self.socket = socket
        self.usage = Usage()
        self.config = StreamConfig(service.rate)
        self.recognition: Recognition | None = None
        self.partial: Sequence[Word] = ()
        self.rest = b""  # half of a sample, whose other half is in the next message

    async def run(self) -> None:
        """Accept the client and answer its messages until it leaves."""
        await self.socket.accept()
        try:
            code, reason = await self._serve()
            if code in (BAD_DATA, INTERNAL):
                await self._send({"error": reason})
            await self.socket.close(code, _shortened(reason))
        except WebSocketDisconnect:
            pass
        except TimeoutError:  # the client does not read, so it would not read a close frame either
            self.service.metrics.errors["not_reading"] += 1
            self.socket.scope["extensions"][ABORT]["call"]()

    async def _serve(self) -> tuple[int, str]:
        """Answer messages until the last one; return code and reason for closing the connection."""
        try:
            with self.service.stream("websocket") as self.usage:
                return await self._answer_all()
        except BusyError as fault:
            return TRY_LATER, str(fault)
        except (ArgonautError, ProtocolError) as fault:
            self.service.metrics.errors["client"] += 1
            return BAD_DATA, one_line(fault)
        except (WebSocketDisconnect, TimeoutError):
            raise
        except Exception:
            self.service.metrics.errors["internal"] += 1
            logger.exception("a stream ended with an internal error")
            return INTERNAL, "internal error"

    async def _answer_all(self) -> tuple[int, str]:
        """Answer messages until the client has ended its audio; return code and reason for closing the connection."""
        stopping = asyncio.ensure_future(self.service.stopping.wait())
        try:
            while True:
                message = await self._receive(stopping)
                if message is None and stopping.done():
                    await self._send(await self._finish())
                    return GOING_AWAY, "the server is stopping"
                if message is None:
                    self.service.metrics.errors["idle"] += 1
                    await self._send(await self._finish())
                    return POLICY, f"no data for {self.service.limits.idle:g} s"
                begin = time.perf_counter()
                reply, ended = await self._answer(message)
                if reply is not None:
                    await self._send(reply)
                    self.service.metrics.answers.observe(time.perf_counter() - begin)
                if ended:
                    return NORMAL, ""
                if self.usage.audio_seconds > self.service.limits.stream_seconds:
                    await self._send(await self._finish())
                    return POLICY, f"{self.service.limits.stream_seconds:g} s of audio, as much as allowed"
        finally:
            stopping.cancel()

    async def _receive(self, stopping: asyncio.Future[Any]) -> bytes | str | None:
        """Return the next message; None if the server stops, or after a time without data."""
        receiving = asyncio.ensure_future(self.socket.receive())
        try:
            await asyncio.wait(
                {receiving, stopping}, timeout=self.service.limits.idle, return_when=asyncio.FIRST_COMPLETED
            )
        finally:
            if not receiving.done():
                receiving.cancel()
        if not receiving.done() or receiving.cancelled():
            return None
        message = receiving.result()
        if message["type"] == "websocket.disconnect":
            raise WebSocketDisconnect(message.get("code", GOING_AWAY))
        return message["bytes"] if message.get("bytes") is not None else message["text"]

    async def _send(self, answer: dict[str, Any]) -> None:
        """Send an answer; raises TimeoutError if the client does not read."""
        text = json.dumps(answer, ensure_ascii=False)
        await asyncio.wait_for(self.socket.send_text(text), self.service.limits.idle)

    async def _answer(self, message: bytes | str) -> tuple[dict[str, Any] | None, bool]:
        """Return the answer to a message, None for a configuration, and whether the audio has ended."""
        if isinstance(message, bytes) and not _is_end(message):
            return await self._recognize(message), False
        try:
            content = json.loads(message)
        except (ValueError, RecursionError):
            content = None
        if isinstance(content, dict) and isinstance(content.get("config"), dict):
            self._configure(content["config"])
            return None, False
        if isinstance(content, dict) and content.get("eof"):
            return await self._finish(), True
        raise ProtocolError(
            f'text message {message[:60]!r}; expected {{"config": {{...}}}}, {{"eof": 1}}, or audio in binary messages'
        )

    def _configure(self, given: dict[str, Any]) -> None:
        config = self.config.updated(given)
        if self.recognition is not None and (config.sample_rate, config.phrase_list) != (
            self.config.sample_rate,
            self.config.phrase_list,
        ):
            raise ProtocolError("config: another sample_rate or phrase_list after audio; expected it before")
        self.config = config

    async def _begin(self) -> Recognition:
        """Make the stream; with phrases, their graph is compiled first."""
        recognizer = self.service.recognizer
        if self.config.phrase_list:
            # As in vosk, phrases with words that are not in the dictionary are left out.
            limited = functools.partial(recognizer.with_grammar, list(self.config.phrase_list), drop_missing=True)
            recognizer = await self.service.decode_file(self.usage, limited)
            if recognizer.grammar is not None and recognizer.grammar.missing:
                missing = ascii(" ".join(recognizer.grammar.missing)[:200])  # without control characters
                logger.warning("phrase_list: left out, not in the dictionary: %s", missing)
        return recognizer.stream(self.config.sample_rate)

    async def _recognize(self, data: bytes) -> dict[str, Any]:
        """Return the answer to a block of audio."""
        if self.recognition is None:
            self.recognition = await self._begin()
        data = self.rest + data
        num_complete = len(data) - len(data) % WIDTH
        samples = np.frombuffer(data[:num_complete], "<i2").astype(np.int16, copy=False)
        self.rest = data[num_complete:]
        step = round(STEP * self.config.sample_rate)
        finals = []
        for begin in range(0, len(samples), step):
            block = samples[begin : begin + step]
            seconds = len(block) / self.config.sample_rate
            finals += self._take(await self.service.decode(self.usage, seconds, self.recognition.push, block))
        return await self._result(finals) if finals else self._partial_result()

    async def _finish(self) -> dict[str, Any]:
        """Return the answer to the end of the audio."""
        if self.recognition is None:
            return await self._result([])
        recognition = self.recognition
        self.recognition = None
        return await self._result(self._take(await self.service.decode(self.usage, 0.0, recognition.finish)))

    def _take(self, events: list[RecognitionEvent]) -> list[RecognitionEvent]:
        """Keep the words of the utterance that goes on; return the utterances that have ended."""
        for event in events:
            self.partial = () if event.is_final else event.words
        return [event for event in events if event.is_final]

    def _partial_result(self) -> dict[str, Any]:
        reply: dict[str, Any] = {"partial": " ".join(word.text for word in self.partial)}
        if self.config.partial_words and self.partial:
            reply["partial_result"] = [_word(word) for word in self.partial]
        return reply

    async def _result(self, finals: list[RecognitionEvent]) -> dict[str, Any]:
        """Return the answer with the words of utterances that have ended."""
        count = self.config.max_alternatives
        if not count:
            slots = [slot for event in finals for slot in event.slots]
            reply = self._text_of([word for event in finals for word in event.words])
            return reply | _judgement(finals) | ({"slots": slot_objects(slots)} if slots else {})
        choices: list[list[list[Word]]] = [[[]]]
        if finals:
            choices = await self.service.decode(self.usage, 0.0, lambda: [event.hypotheses(count) for event in finals])
        alternatives = []
        for number in range(max(map(len, choices))):  # several utterances share an answer: the n-th best of each
            words = [word for hypotheses in choices for word in hypotheses[min(number, len(hypotheses) - 1)]]
            confidences = [word.confidence for word in words if word.confidence is not None]
            mean = sum(confidences) / len(confidences) if confidences else 1.0
            confidence = {} if words and not confidences else {"confidence": mean}
            alternatives.append(self._text_of(words) | confidence)
        return {"alternatives": alternatives} | _judgement(finals)

    def _text_of(self, words: Sequence[Word]) -> dict[str, Any]:
        content: dict[str, Any] = {"text": " ".join(word.text for word in words)}
        if self.config.words and words:
            content["result"] = [_word(word) for word in words]
        return content


def _judgement(finals: Sequence[RecognitionEvent]) -> dict[str, Any]:
    """Return whether a grammar accepts all of the utterances, with the lowest score; nothing without a grammar."""
    scores = [event.grammar_score for event in finals if event.grammar_score is not None]
    return judgement_object(all(event.accepted for event in finals) if scores else None, min(scores, default=None))


def _is_end(data: bytes) -> bool:
    """Whether a binary message is nothing but the JSON text of the end, which some clients send so."""
    return re.fullmatch(rb'\s*\{\s*"eof"\s*:\s*(?:1|true)\s*\}\s*', data) is not None


def _word(word: Word) -> dict[str, Any]:
    """Return a word as in vosk's results."""
    content: dict[str, Any] = {"word": word.text, "start": round(word.start, 3), "end": round(word.end, 3)}
    return content if word.confidence is None else content | {"conf": round(word.confidence, 4)}


def _shortened(reason: str) -> str:
    """Return as much of a text as fits into a close frame."""
    return reason.encode()[:MOST_REASON].decode(errors="ignore")
