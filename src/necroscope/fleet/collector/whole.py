"""A collector with all that it serves: intake, questions, the fleet's page, and evidence in the
time machine.
"""

from typing import Any

from fastapi import FastAPI

from necroscope.fleet.collector import page_routes, questions_routes, session_routes
from necroscope.fleet.collector.app import create_app
from necroscope.fleet.collector.collector import TokenSource
from necroscope.fleet.collector.evidence import RecordingOf
from necroscope.fleet.collector.evidence_routes import evidence_router
from necroscope.fleet.lake import Lake
from necroscope.views.web.app import STATIC


def whole_app(
    lake: Lake, tokens: TokenSource, recording_of: RecordingOf, **options: Any
) -> FastAPI:
    """`recording_of` joins the recording in a bundle with what diagnoses it; `options` are those of
    `create_app`.
    """
    routers = (
        questions_routes.router,
        page_routes.router,
        session_routes.router,
        evidence_router(recording_of),
    )
    app = create_app(lake, tokens, routers=routers, page=STATIC, **options)
    app.add_middleware(session_routes.SessionCookie)
    return app
