"""The collector's application: intake, health and metrics; with a page also questions, sessions and
evidence in the time machine.
"""

import asyncio
import signal
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, JSONResponse
from fastapi.staticfiles import StaticFiles

from necroscope import __version__
from necroscope.errors import NecroscopeError
from necroscope.fleet.collector import intake_routes, questions_routes, session_routes
from necroscope.fleet.collector.access import CollectorOf
from necroscope.fleet.collector.admission import answer_refusal
from necroscope.fleet.collector.collector import (
    COMMIT_EVERY_S,
    COMPACT_EVERY_S,
    Collector,
    TokenSource,
)
from necroscope.fleet.collector.evidence_child import RecordingOf
from necroscope.fleet.collector.evidence_routes import evidence_router
from necroscope.fleet.collector.metrics import Metrics
from necroscope.fleet.collector.upkeep import Upkeep
from necroscope.fleet.lake import Lake
from necroscope.fleet.limits import DEFAULT_LIMITS, Limits
from necroscope.views.web.export import STATIC
from necroscope.views.web.guard import POLICY, Application, Message, Receive, Scope, Send

_HEADERS: Final = (
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
)


class ResponseWatch:
    def __init__(self, app: Application, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_watched(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._metrics.add("requests", 1, str(message["status"]))
                have = {name.lower() for name, _ in message["headers"]}
                message["headers"] = [
                    *message["headers"],
                    *(pair for pair in _HEADERS if pair[0] not in have),
                ]
            await send(message)

        await self._app(scope, receive, send_watched if scope["type"] == "http" else send)


_METRICS_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
service: Final = APIRouter()


def create_app(
    lake: Lake,
    tokens: TokenSource,
    *,
    routers: Iterable[APIRouter] = (),
    page: Path | None = None,
    limits: Limits = DEFAULT_LIMITS,
    commit_every_s: float = COMMIT_EVERY_S,
    compact_every_s: float = COMPACT_EVERY_S,
    free_floor_bytes: int = 0,
    keep_ns: int | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> FastAPI:
    """`routers` answer questions (see `access`); `page` is a directory whose fleet.html is served
    at `/`, and its other files.

    `say` hears what people should know, a line each.
    """
    collector = Collector(
        lake,
        tokens,
        limits,
        commit_every_s=commit_every_s,
        compact_every_s=compact_every_s,
        free_floor_bytes=free_floor_bytes,
        keep_ns=keep_ns,
        say=say,
    )
    app = FastAPI(
        title="necroscope collector",
        version=__version__,
        docs_url=None,
        redoc_url=None,
        lifespan=_lifespan,
    )
    app.state.collector = collector
    app.exception_handler(NecroscopeError)(answer_refusal)
    app.exception_handler(RequestValidationError)(_answer_bad_words)
    app.add_middleware(ResponseWatch, metrics=collector.metrics)
    for router in (service, intake_routes.router, *routers):
        app.include_router(router)
    if page is not None:
        _add_page(app, page)
    return app


def create_fleet_app(
    lake: Lake, tokens: TokenSource, recording_of: RecordingOf, **options: Any
) -> FastAPI:
    """With questions, the fleet's page and evidence. `recording_of` joins the recording in a bundle
    with what diagnoses it; `options` are those of `create_app`.
    """
    routers = (questions_routes.router, session_routes.router, evidence_router(recording_of))
    app = create_app(lake, tokens, routers=routers, page=STATIC, **options)
    app.add_middleware(session_routes.SessionCookie)
    return app


def _add_page(app: FastAPI, page: Path) -> None:
    """The page itself is open to all; what it shows, it asks for with its reader's token."""

    @app.get("/", include_in_schema=False)
    async def fleet_page() -> Response:
        if not (page / "fleet.html").is_file():
            text = (
                "error: the page was not built\nhint: run `npm ci && npm run build` in web/, or"
                " scripts/setup, which does\n"
            )
            return Response(text, 503, media_type="text/plain; charset=utf-8")
        return FileResponse(page / "fleet.html")

    if page.is_dir():
        app.mount("/", StaticFiles(directory=page))


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    """At the end what waits is committed, and what is committed is compacted."""
    collector: Collector = app.state.collector
    upkeep = Upkeep(collector)
    committing = asyncio.create_task(collector.commits.run(), name="group commits")
    keeping_up = asyncio.create_task(upkeep.run(), name="upkeep")
    for task in (committing, keeping_up):
        task.add_done_callback(lambda ended: _end_if_broken(ended, collector))
    yield
    collector.commits.close()
    await committing
    upkeep.close()
    await keeping_up
    collector.decoders.shutdown()


def _end_if_broken(task: asyncio.Task[None], collector: Collector) -> None:
    """A collector that only looks alive is worse than one that is started again."""
    if not task.cancelled() and (error := task.exception()) is not None:
        collector.say(f"{task.get_name()} broke: {error!r}; ending")
        signal.raise_signal(signal.SIGTERM)


@service.get("/healthz")
async def healthz(collector: CollectorOf) -> JSONResponse:
    """503 while the lake takes nothing: a balancer then asks another collector."""
    failure = collector.commits.failure
    content = (
        {"status": "ok"}
        if failure is None
        else {"status": "lake", "error": failure.facts, "hint": failure.hint}
    )
    return JSONResponse({**content, "version": __version__}, 200 if failure is None else 503)


@service.get("/metrics")
async def metrics(collector: CollectorOf) -> Response:
    return Response(collector.metrics_text(), media_type=_METRICS_TYPE)


def _answer_bad_words(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    facts = "; ".join(f"{item['loc'][-1]}: {item['msg']}" for item in error.errors())
    return JSONResponse({"error": facts, "hint": "see /openapi.json"}, 422)
