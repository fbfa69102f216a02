"""The HTTP interface for files, as OpenAI's own client calls it."""

import json
import socket
import urllib.request
from pathlib import Path

import numpy as np
import openai
import pytest
import soundfile

from decoder.recognizer.transcript import Transcript
from readers.htk.mlf import read_mlf
from readers.htk.slf import read_slf
from recipes.serve.files.formats import FORMATS, json_content, verbose_content
from recipes.serve.files.transcriptions import KNOWN_FIELDS
from tests.recipes.systems.small_system import RATE


@pytest.fixture(scope="module")
def client(server):
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key="unused", max_retries=0) as client:
        yield client


def ask(client, speech, **how):
    with Path(speech).open("rb") as file:
        return client.audio.transcriptions.create(**{"model": "whisper-1", "file": file, **how})


def test_text_forms(client, speech):
    assert ask(client, speech).text == "AB C"
    assert ask(client, speech, response_format="text") == "AB C\n"
    assert "AB C" in ask(client, speech, response_format="srt")
    assert ask(client, speech, response_format="vtt").startswith("WEBVTT")


def test_json_tells_whether_a_grammar_accepts():
    transcript = Transcript((), "", 1.0, grammar_score=-1.23456, accepted=False)
    assert json_content(transcript)["accepted"] is False
    assert verbose_content(transcript, "en")["grammar_score"] == -1.235
    assert "accepted" not in json_content(Transcript((), "", 1.0))


def test_verbose_json(client, speech, recognizer):
    found = ask(client, speech, response_format="verbose_json", timestamp_granularities=["word", "segment"])
    words = recognizer.transcribe(speech).words
    assert [(word.word, word.start, word.end) for word in found.words] == [
        (word.text, round(word.start, 3), round(word.end, 3)) for word in words
    ]
    assert [word.confidence for word in found.words] == [round(word.confidence, 4) for word in words]
    assert (found.text, found.language, found.task) == ("AB C", "en", "transcribe")
    assert found.duration == round(soundfile.info(speech).duration, 3)
    assert [segment.text for segment in found.segments] == ["AB C"]
    assert found.segments[0].start == found.words[0].start
    words_only = ask(client, speech, response_format="verbose_json", timestamp_granularities=["word"])
    assert words_only.words
    assert words_only.segments is None
    segments = ask(client, speech, response_format="verbose_json", timestamp_granularities=["segment"])
    assert segments.words is None
    assert segments.segments


def test_phones_with_times_and_confidences(client, speech, recognizer):
    found = ask(client, speech, response_format="verbose_json", timestamp_granularities=["phone"])
    phones = recognizer.with_phones().transcribe(speech).as_dict()["phones"]
    assert found.phones == phones
    assert found.words is None


def test_alternatives(client, speech, recognizer):
    found = ask(client, speech, response_format="verbose_json", extra_body={"max_alternatives": 3})
    expected = recognizer.transcribe(speech).alternatives(3)
    assert [one["text"] for one in found.alternatives] == expected
    assert [[word["word"] for word in one["words"]] for one in found.alternatives] == [
        text.split() for text in expected
    ]
    assert all(0 < word["confidence"] <= 1 for one in found.alternatives for word in one["words"])


def test_models(client):
    (model,) = client.models.list().data
    assert (model.id, model.object, model.owned_by) == ("tones", "model", "argonaut")
    assert client.models.retrieve("tones").id == "tones"
    with pytest.raises(openai.NotFoundError):
        client.models.retrieve("other")


def test_fields_without_effect_are_named(client, speech):
    with Path(speech).open("rb") as file:
        raw = client.audio.transcriptions.with_raw_response.create(
            model="tones", file=file, language="en-US", prompt="Hello", temperature=0.5, extra_body={"frobnicate": 1}
        )
    assert set(raw.headers["x-argonaut-ignored"].split(", ")) == {"prompt", "temperature", "frobnicate"}
    assert raw.parse().text == "AB C"


@pytest.mark.parametrize(
    ("how", "error", "param", "message"),
    [
        ({"model": "gpt-9"}, openai.NotFoundError, "model", "model 'gpt-9'; expected tones or whisper-1"),
        ({"language": "de"}, openai.BadRequestError, "language", "language 'de'; expected en, the model's"),
        ({"temperature": 3}, openai.BadRequestError, "temperature", "expected a number from 0 to 1"),
        ({"response_format": "docx"}, openai.BadRequestError, "response_format", "'docx'; expected json, verbose_json"),
        (
            {"timestamp_granularities": ["state"]},
            openai.BadRequestError,
            "timestamp_granularities",
            "segment, phone",
        ),
        ({"extra_body": {"max_alternatives": "x"}}, openai.BadRequestError, "max_alternatives", "a whole number"),
        ({"extra_body": {"stream": "true"}}, openai.BadRequestError, "stream", "use the WebSocket"),
    ],
)
def test_refusals(client, speech, how, error, param, message):
    with pytest.raises(error) as refused:
        ask(client, speech, **how)
    assert refused.value.param == param
    assert message in refused.value.message


def test_what_is_no_audio(client, tmp_path, speech):
    bad = tmp_path / "letter.wav"
    bad.write_text("Dear Sir")
    with pytest.raises(openai.BadRequestError) as refused:
        ask(client, bad)
    assert refused.value.body["message"].startswith("letter.wav: audio of no known format")
    bad.write_bytes(b"fLaC" + bytes(3000))
    with pytest.raises(openai.BadRequestError, match=r"letter\.wav: .*expected audio that libsndfile can decode"):
        ask(client, bad)


def test_recordings_without_a_length(client, speech, tmp_path):
    samples, rate = soundfile.read(speech, dtype="int16")
    path = tmp_path / "recording.flac"
    soundfile.write(path, samples, rate)
    content = bytearray(path.read_bytes())
    content[21:26] = bytes([content[21] & 0xF0, 0, 0, 0, 0])
    path.write_bytes(content)
    found = ask(client, path, response_format="verbose_json")
    assert (found.text, found.duration) == ("AB C", round(len(samples) / rate, 3))
    assert found.notes == ["its header has no length; read to the end"]
    path = tmp_path / "recording.wav"
    content = bytearray(Path(speech).read_bytes())
    content[40:44] = bytes(4)
    path.write_bytes(content)
    assert ask(client, path).text == "AB C"


def test_channels_are_mixed(client, speech, tmp_path):
    samples, rate = soundfile.read(speech)
    path = tmp_path / "stereo.flac"
    soundfile.write(path, np.stack([samples, samples * 0.5], axis=1), rate)
    assert ask(client, path).text == "AB C"


def test_sizes_and_durations(start, speech, tmp_path):
    with start(upload=0.01, file_seconds=1.0) as server:
        client = openai.OpenAI(base_url=f"{server.url}/v1", api_key="unused", max_retries=0)
        with pytest.raises(openai.APIStatusError) as refused:
            ask(client, speech)
        assert refused.value.status_code == 413
        short = tmp_path / "short.flac"
        soundfile.write(short, [0.0] * RATE * 2, RATE)
        with pytest.raises(openai.APIStatusError, match="2 s of audio; expected at most 1 s"):
            ask(client, short)


def test_an_upload_without_a_length(start):
    """Its size is counted while it arrives; the answer comes before the end."""
    head = (
        "POST /v1/audio/transcriptions HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n"
        "Content-Type: multipart/form-data; boundary=x\r\n\r\n"
    )
    part = b'--x\r\nContent-Disposition: form-data; name="file"; filename="a.wav"\r\n\r\n' + bytes(1 << 21)
    with start(upload=0.01) as server, socket.create_connection(("127.0.0.1", server.port), timeout=30) as raw:
        raw.sendall(head.encode() + f"{len(part):x}\r\n".encode() + part + b"\r\n")
        assert raw.recv(12) == b"HTTP/1.1 413"


def test_no_stream_left(start, speech):
    from tests.recipes.serve.conftest import connect

    with start(streams=1) as server, connect(server.ws) as open_stream:
        open_stream.send(b"12")
        open_stream.recv()
        client = openai.OpenAI(base_url=f"{server.url}/v1", api_key="unused", max_retries=0)
        with pytest.raises(openai.InternalServerError) as refused:
            ask(client, speech)
        assert refused.value.status_code == 503
        assert refused.value.response.headers["retry-after"] == "2"


def test_errors_have_openais_form(server):
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(f"{server.url}/v1/nothing")
    assert set(json.load(refused.value)["error"]) == {"message", "type", "param", "code"}
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(f"{server.url}/v1/audio/transcriptions", data=b"x")
    assert refused.value.code == 415


def test_formats_of_other_tools(client, speech, recognizer, tmp_path):
    transcript = recognizer.transcribe(speech)
    ctm = [line.split() for line in ask(client, speech, response_format="ctm").splitlines()]
    assert [(line[0], line[4]) for line in ctm] == [("speech", "AB"), ("speech", "C")]
    (tmp_path / "a.mlf").write_text(ask(client, speech, response_format="mlf"), encoding="utf-8")
    assert [label.name for label in read_mlf(tmp_path / "a.mlf")["speech"]] == ["AB", "C"]
    (tmp_path / "a.slf").write_text(ask(client, speech, response_format="slf"), encoding="utf-8")
    assert read_slf(tmp_path / "a.slf").word == transcript.lattice.word
    assert '"AB"' in ask(client, speech, response_format="textgrid")


def test_the_interface_is_described(server):
    def get(path: str) -> dict:
        with urllib.request.urlopen(server.url + path) as answer:
            return json.load(answer)

    described = get("/openapi.json")
    (post,) = described["paths"]["/v1/audio/transcriptions"].values()
    fields = post["requestBody"]["content"]["multipart/form-data"]["schema"]["properties"]
    assert set(fields) <= set(KNOWN_FIELDS)
    assert tuple(fields["response_format"]["enum"]) == FORMATS
    for path in described["paths"]:
        if "get" in described["paths"][path]:
            urllib.request.urlopen(server.url + path.replace("{name}", server.service.name)).close()
    (model,) = get("/v1/models")["data"]
    assert model["num_words"] == 4
    assert set(model["examples"]) == {"AB", "BA", "C", "CAB"}
    assert get("/v1/audio/progress/none") == {"done": 0.0, "total": None}
