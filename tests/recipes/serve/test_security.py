"""Who may call the server: Host, Origin, access token, TLS; and the headers of its answers."""

import http.client
import json
import shutil
import ssl
import subprocess

import openai
import pytest
from websockets.exceptions import InvalidStatus

from readers.errors import ConfigError, FormatError
from recipes.serve.security import AccessPolicy, is_private, read_token
from tests.recipes.serve.conftest import connect, speak_to

TOKEN = "0123456789abcdef"


def get(server, path="/healthz", method="GET", **headers):
    """Return (status, headers, body) of a request."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port)
    connection.request(method, path, headers={name.replace("_", "-"): value for name, value in headers.items()})
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    return answer.status, answer.headers, body


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:2700", "127.0.0.1", "[::1]:2700", "10.1.2.3", "localhost."])
def test_names_of_the_server(server, host):
    assert get(server, Host=host)[0] == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:2700", "localhost.evil.example", "", "[", "127.0.0.1.nip.io"]
)
def test_another_name_is_refused_because_its_address_may_have_been_changed(server, host):
    status, _, body = get(server, Host=host)
    assert status == 403
    assert json.loads(body)["error"]["code"] == "host"


def test_websockets_are_refused_as_well(server):
    upgrade = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec_WebSocket_Version": "13"}
    upgrade["Sec_WebSocket_Key"] = "dGhlIHNhbXBsZSBub25jZQ=="
    assert get(server, "/", Host="evil.example", **upgrade)[0] == 403
    for origin in ("https://evil.example", "null"):
        with pytest.raises(InvalidStatus) as refused, connect(server.ws, origin=origin):
            pass
        assert refused.value.response.status_code == 403
    with connect(server.ws, origin=server.url):
        pass


@pytest.mark.parametrize(
    "origin", ["https://evil.example", "null", "http://127.0.0.1", "file://", "http://localhost:1"]
)
def test_a_page_elsewhere_is_refused(server, origin):
    assert get(server, Origin=origin)[0] == 403
    assert get(server, "/v1/audio/transcriptions", "POST", Origin=origin)[0] == 403


def test_the_servers_own_page_is_answered(server):
    status, headers, _ = get(server, Origin=server.url)
    assert status == 200
    assert "access-control-allow-origin" not in headers


def test_names_and_pages_that_were_allowed(start):
    policy = AccessPolicy(frozenset({"speech.example"}), frozenset({"https://page.example"}))
    with start(policy) as server:
        assert get(server, Host="speech.example")[0] == 200
        status, headers, _ = get(server, Origin="https://page.example")
        assert (status, headers["access-control-allow-origin"]) == (200, "https://page.example")
        status, headers, _ = get(server, "/v1/audio/transcriptions", "OPTIONS", Origin="https://page.example")
        assert status == 204
        assert "POST" in headers["access-control-allow-methods"]
        assert get(server, Origin="https://page.example.evil.example")[0] == 403


def test_token(start, speech, pcm):
    with start(AccessPolicy(token=TOKEN)) as server:
        assert get(server)[0] == get(server, "/")[0] == 200
        for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": f"Basic {TOKEN}"}):
            status, answered, body = get(server, "/v1/models", **headers)
            assert (status, answered["www-authenticate"]) == (401, "Bearer")
            assert json.loads(body)["error"]["code"] == "invalid_api_key"
            assert get(server, "/metrics", **headers)[0] == 401
            with pytest.raises(InvalidStatus), connect(server.ws, additional_headers=headers):
                pass
        assert get(server, f"/v1/models?token={TOKEN}")[0] == 401  # addresses are for WebSockets
        assert get(server, "/v1/models", Authorization=f"Bearer {TOKEN}")[0] == 200
        with connect(f"{server.ws}/asr?token={TOKEN}") as socket:
            assert speak_to(socket, pcm)[-1]["text"] == "AB C"
        with connect(server.ws, additional_headers={"Authorization": f"Bearer {TOKEN}"}) as socket:
            assert speak_to(socket, pcm)[-1]["text"] == "AB C"
        for key, fits in ((TOKEN, True), ("wrong", False)):
            client = openai.OpenAI(base_url=f"{server.url}/v1", api_key=key, max_retries=0)
            if fits:
                assert client.audio.transcriptions.create(model="tones", file=speech).text == "AB C"
            else:
                with pytest.raises(openai.AuthenticationError):
                    client.models.list()


@pytest.mark.parametrize(("path", "status"), [("/page/app.js", 404), ("/nothing", 403), ("/v1/models", 403)])
def test_websockets_have_their_own_addresses(server, path, status):
    with pytest.raises(InvalidStatus) as refused, connect(server.ws + path):
        pass
    assert refused.value.response.status_code == status


def test_token_files(tmp_path):
    path = tmp_path / "token"
    path.write_text(f"{TOKEN}\n")
    path.chmod(0o600)
    assert read_token(str(path)) == TOKEN
    assert is_private(str(path))
    path.chmod(0o644)
    assert not is_private(str(path))
    for bad in ("", "short\n", f"{TOKEN}\n{TOKEN}\n", "a token with blanks", "é" * 20):
        path.write_text(bad, encoding="utf-8")
        with pytest.raises(FormatError, match="expected one, with an access token of at least 16"):
            read_token(str(path))


def test_headers_of_every_answer(server):
    for path in ("/", "/healthz", "/v1/models", "/nothing", "/page/nothing.js"):
        _, headers, _ = get(server, path)
        assert headers["x-content-type-options"] == "nosniff"
        policy = headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; script-src 'self'")
        assert "unsafe" not in policy
        assert "http" not in policy
        assert "server" not in headers


@pytest.mark.parametrize("path", ["/page/../application.py", "/page/%2e%2e/application.py", "/page//etc/passwd"])
def test_no_other_file_is_served(server, path):
    assert get(server, path)[0] == 404


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    """Files of a certificate for 127.0.0.1 and its key."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed")
    root = tmp_path_factory.mktemp("tls")
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=test"
    subprocess.run(
        [
            *command.split(),
            "-keyout",
            root / "key.pem",
            "-out",
            root / "cert.pem",
            "-addext",
            "subjectAltName=IP:127.0.0.1",
        ],
        check=True,
        capture_output=True,
    )
    return {"certificate": str(root / "cert.pem"), "key": str(root / "key.pem")}


def test_tls(start, certificate, pcm):
    with start(tls=certificate) as server:
        assert server.url.startswith("https://")
        trusting = ssl.create_default_context(cafile=certificate["certificate"])
        with connect(server.ws, ssl=trusting, origin=server.url) as socket:
            assert speak_to(socket, pcm)[-1]["text"] == "AB C"
        connection = http.client.HTTPSConnection("127.0.0.1", server.port, context=trusting)
        connection.request("GET", "/healthz")
        assert connection.getresponse().status == 200
        connection.close()


def test_a_certificate_that_cannot_be_used(start, certificate):
    with (
        pytest.raises(ConfigError, match="expected a certificate and its key in PEM format"),
        start(tls=certificate | {"key": certificate["certificate"]}),
    ):
        pass
