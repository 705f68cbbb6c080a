"""The time machine over the evidence of an incident: `/evidence/CLUSTER/DATE/NODE--ID.bundle/`, as
`necroscope view` serves it.

The page and its files are open to all, so that a link opens from anywhere; what it asks for needs a
reader's token.
"""

import re
from datetime import date, timedelta
from typing import Final

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.responses import RedirectResponse

from necroscope.errors import CorruptData
from necroscope.fleet.collector.access import CollectorOf, Reader
from necroscope.fleet.collector.admission import Refusal
from necroscope.fleet.collector.evidence import MOST_OPEN, EvidenceShelf
from necroscope.fleet.collector.evidence_child import EvidenceLostError, RecordingOf
from necroscope.fleet.lake import Lake
from necroscope.fleet.lake_files import NotInLake
from necroscope.fleet.protocol import NAME
from necroscope.views.web.app import add_files
from necroscope.views.web.guard import Application, Receive, Scope, Send

EVIDENCE_PATH: Final = "/evidence/{cluster}/{day}/{bundle}"
_EARLIEST: Final = date(2000, 1, 1)
# Headers of an answer that its process may choose.
_PASSED: Final = frozenset({"content-type", "content-disposition"})
_BUNDLE: Final = re.compile(r"[A-Za-z0-9._-]{1,260}\.bundle")
# What a request is by itself; the rest of a scope is how the collector found its route.
_OWN: Final = (
    "type",
    "asgi",
    "http_version",
    "method",
    "scheme",
    "query_string",
    "headers",
    "client",
    "server",
    "extensions",
)


def evidence_router(recording_of: RecordingOf, most_open: int = MOST_OPEN) -> APIRouter:
    """`recording_of` joins a recording with what diagnoses and exports it."""
    router, shelf = APIRouter(), EvidenceShelf(recording_of, most_open)
    files = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)
    add_files(files)

    @router.get(EVIDENCE_PATH, include_in_schema=False)
    async def without_slash(cluster: str, day: str, bundle: str) -> Response:
        _places(cluster, day, bundle)
        return RedirectResponse(f"{bundle}/", 308)

    @router.get(EVIDENCE_PATH + "/api/{question:path}", include_in_schema=False)
    async def ask(
        cluster: str,
        day: str,
        bundle: str,
        question: str,
        request: Request,
        grant: Reader,
        collector: CollectorOf,
    ) -> Response:
        paths = _places(cluster, day, bundle)
        if grant.clusters is not None and cluster not in grant.clusters:
            raise Refusal(
                403,
                f"this token reads {grant.cluster}, not {cluster}",
                "use a token of that cluster, or of all: '*'",
            )

        query = request.scope.get("query_string", b"")
        try:
            answer = await shelf.ask(
                paths[0], lambda: _read(collector.lake, paths), f"/api/{question}", query
            )
        except CorruptData as error:
            raise Refusal(
                422, error.facts, "the evidence came so; the incident itself is in the list"
            ) from None
        except EvidenceLostError as error:
            raise Refusal(503, error.facts, error.hint or "") from None
        headers = {name: value for name, value in answer.headers if name in _PASSED}
        return Response(answer.body, answer.status, headers)

    @router.get(EVIDENCE_PATH + "/{file:path}", include_in_schema=False)
    async def page(cluster: str, day: str, bundle: str, file: str) -> Response:
        _places(cluster, day, bundle)
        return _ForwardedPage(files, f"/{file}")

    return router


def _places(cluster: str, day: str, bundle: str) -> list[str]:
    """In the lake. A bundle lies under the day on which its window begins: after midnight that may
    be the day before.
    """
    try:
        began = date.fromisoformat(day)
    except ValueError:
        began = date.min
    if began < _EARLIEST or not NAME.fullmatch(cluster) or not _BUNDLE.fullmatch(bundle):
        raise Refusal(404, "this is not evidence", "open it from the list of incidents")
    return [
        f"bundles/cluster={cluster}/date={each}/{bundle}"
        for each in (began, began - timedelta(days=1))
    ]


def _read(lake: Lake, paths: list[str]) -> bytes:
    try:
        return lake.read(paths[0])
    except NotInLake:
        return lake.read(paths[1])


class _ForwardedPage(Response):
    """The page and its files, as if their application had been asked itself."""

    def __init__(self, app: Application, path: str) -> None:
        super().__init__()
        self._app = app
        self._path = path

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        own = {name: scope[name] for name in _OWN if name in scope}
        await self._app({**own, "path": self._path, "root_path": ""}, receive, send)
