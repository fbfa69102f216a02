"""The addresses of the server."""

from pathlib import Path

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import Mount, Route, WebSocketRoute
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp
from starlette.websockets import WebSocket

from recipes.serve.files.alignments import align
from recipes.serve.files.pronunciations import pronounce
from recipes.serve.files.requests import error_response
from recipes.serve.files.transcriptions import transcribe
from recipes.serve.security import AccessPolicy, Gate
from recipes.serve.service import Service
from recipes.serve.websocket import Session

PAGE = Path(__file__).parent / "page"
SPOKEN = ("/", "/asr")  # addresses of the WebSocket
OWNER = "argonaut"
MOST_EXAMPLES = 5  # words that show what the model knows


def make_application(service: Service, policy: AccessPolicy) -> ASGIApp:
    """Return the ASGI application.

    Parameters
    ----------
    service : Service
    policy : AccessPolicy
        Who may call it.
    """

    async def page(request: Request) -> Response:
        return FileResponse(PAGE / "index.html", headers={"Cache-Control": "no-cache"})

    async def transcriptions(request: Request) -> Response:
        return await transcribe(service, request)

    async def alignments(request: Request) -> Response:
        return await align(service, request)

    async def pronunciations(request: Request) -> Response:
        return await pronounce(service, request)

    async def models(request: Request) -> Response:
        return JSONResponse({"object": "list", "data": [_model(service)]})

    async def model(request: Request) -> Response:
        if request.path_params["name"] != service.name:
            return error_response(404, f"no such model; expected {service.name}", "model", "model_not_found")
        return JSONResponse(_model(service))

    async def progress(request: Request) -> Response:
        done, total = service.progress.get(request.path_params["id"], (0.0, None))
        return JSONResponse({"done": done, "total": total})

    async def description(request: Request) -> Response:
        return FileResponse(PAGE / "openapi.json")

    async def health(request: Request) -> Response:
        stopping = service.stopping.is_set()
        content = {"status": "stopping" if stopping else "ok", "streams": service.num_open}
        return JSONResponse(content | {"max_streams": service.limits.streams}, 503 if stopping else 200)

    async def metrics(request: Request) -> Response:
        return PlainTextResponse(
            service.metrics.text(service.limits.streams), media_type="text/plain; version=0.0.4; charset=utf-8"
        )

    async def speak(socket: WebSocket) -> None:
        await Session(service, socket).run()

    routes = [
        Route("/", page),
        *(WebSocketRoute(path, speak) for path in SPOKEN),
        Route("/v1/audio/transcriptions", transcriptions, methods=["POST"]),
        Route("/v1/align", alignments, methods=["POST"]),
        Route("/v1/audio/pronunciations", pronunciations, methods=["POST"]),
        Route("/v1/audio/progress/{id}", progress),
        Route("/openapi.json", description),
        Route("/v1/models", models),
        Route("/v1/models/{name:path}", model),
        Route("/healthz", health),
        Route("/metrics", metrics),
        Mount("/page", StaticFiles(directory=PAGE)),
    ]
    return Gate(Starlette(routes=routes, exception_handlers={HTTPException: _refuse}), policy)


def _model(service: Service) -> dict[str, object]:
    """Return the model in OpenAI's form, with what is not part of it from sample_rate on."""
    words = service.words
    return {
        "id": service.name,
        "object": "model",
        "created": int(service.metrics.started),
        "owned_by": OWNER,
        "sample_rate": service.rate,
        "language": service.language,
        "num_words": len(words),
        "examples": words[:: max(1, len(words) // MOST_EXAMPLES)][:MOST_EXAMPLES],
        "alignment": service.aligner is not None,
        "pronunciation": service.assessor is not None,
    }


async def _refuse(request: Request, fault: Exception) -> Response:
    """Answer a request for an unknown address, or with another method than expected."""
    assert isinstance(fault, HTTPException)  # the only class that it is called for
    return error_response(
        fault.status_code, f"{request.method} {request.url.path[:100]}: {fault.detail}", headers=fault.headers
    )
