"""The server of the time machine: routes over a recording. Every answer says what it left out.

Every question that opens tables has a time limit; the recording's description and its gaps stand in
the manifests.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Final, TypeVar

from fastapi import Depends, FastAPI, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from fastapi.staticfiles import StaticFiles

from necroscope.errors import NecroscopeError, UsageError
from necroscope.model.span import Span
from necroscope.model.units import NS_PER_S
from necroscope.store.choices import DEFAULT_ROWS, GroupBy
from necroscope.store.heatmap import read_heat_map
from necroscope.store.last_rows import read_last_rows
from necroscope.store.longest_waits import WaitHistory
from necroscope.store.query import Store
from necroscope.store.seen_cores import SeenCores
from necroscope.store.selection import Selection
from necroscope.store.time_limit import TimeLimit
from necroscope.views.web import answers
from necroscope.views.web.answers import MEDIA_TYPE, pack_arrays
from necroscope.views.web.cgroups_answer import cgroups_answer
from necroscope.views.web.core_pictures import CorePictures
from necroscope.views.web.counters_answer import counters_answer
from necroscope.views.web.export import STATIC, Export, exported_page
from necroscope.views.web.flame_answer import FlameOf, GraphQuestion, flame_answer
from necroscope.views.web.guard import POLICY, Application, Guard
from necroscope.views.web.incident_search import Diagnose
from necroscope.views.web.parameters import (
    REFUSALS,
    Moment,
    OptionalCpu,
    OptionalMoment,
    Whole,
    selection_of,
    span_of,
)
from necroscope.views.web.reports import Reports
from necroscope.views.web.waits_answer import waits_answer
from necroscope.views.web.worst_core_rows import worst_core_rows

Answer = TypeVar("Answer")
TIME_LIMIT_S: Final = 10.0
_AT_ONCE: Final = 4


@dataclass(slots=True)
class ServedRecording:
    """A recording to show. `diagnose` and `speedscope` come from the parts that this one may not
    know.
    """

    store: Store
    version: str
    diagnose: Diagnose
    speedscope: Callable[[Store, int, int, Selection], bytes]
    reports: Reports = field(init=False)
    _seen: SeenCores = field(init=False)

    def __post_init__(self) -> None:
        self.reports = Reports(self.store, self.diagnose)
        self._seen = SeenCores(self.store)

    def cpus(self) -> list[int]:
        """Cores that were ever seen; their numbers may have holes. Where none was, as many as the
        node is said to have.
        """
        return self._seen.cpus() or list(range(self.store.info().cpus or 0))

    def description(self) -> dict[str, Any]:
        return answers.recording_answer(
            self.store.info(), self.cpus(), is_live=self.store.is_live(), version=self.version
        )


def make_app(
    recording: ServedRecording,
    token: str,
    hosts: frozenset[str],
    static: Path = STATIC,
    once: str | None = None,
) -> Application:
    return Guard(recording_app(recording, static), token, hosts, once)


def recording_app(recording: ServedRecording, static: Path = STATIC) -> FastAPI:
    """Without a guard: for `make_app`, and for a collector, which asks for a token itself."""
    pictures = CorePictures(recording.store)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        pictures.begin(recording.cpus)
        yield
        recording.reports.close()
        pictures.close()

    app = FastAPI(
        title="necroscope",
        version=recording.version,
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
        responses=REFUSALS,
    )
    app.exception_handler(NecroscopeError)(_answer_error)
    app.exception_handler(RequestValidationError)(_answer_bad_words)
    _add_lists(app, recording)
    _add_lines(app, recording.store)
    _add_cores(app, recording, pictures)
    _add_heat(app, recording.store)
    _add_flame(app, recording.store)
    _add_documents(app, recording, static)
    add_files(app, static)
    return app


def add_files(app: FastAPI, static: Path = STATIC) -> None:
    """The page and speedscope, which hold no data. To be added last: they match every path."""
    if (static / "index.html").is_file():
        if (static / "speedscope").is_dir():
            app.mount("/speedscope", SpeedscopeFiles(directory=static / "speedscope", html=True))
        app.mount("/", StaticFiles(directory=static, html=True))
    else:
        app.get("/", include_in_schema=False)(_not_built)


class SpeedscopeFiles(StaticFiles):
    """speedscope compiles WebAssembly to demangle names; the page itself may not, so its policy is
    not theirs.
    """

    def file_response(self, *arguments: Any, **options: Any) -> Response:
        response = super().file_response(*arguments, **options)
        response.headers["content-security-policy"] = POLICY.replace(
            "script-src 'self'", "script-src 'self' 'wasm-unsafe-eval'"
        )
        return response


async def _not_built() -> Response:
    text = (
        "error: the page was not built\nhint: run `npm ci && npm run build` in web/, or"
        " scripts/setup, which does\n"
    )
    return Response(text, 503, media_type="text/plain; charset=utf-8")


def _answer_error(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, NecroscopeError)
    return JSONResponse(
        {"error": error.facts, "hint": error.hint}, 400 if isinstance(error, UsageError) else 500
    )


def _answer_bad_words(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    facts = "; ".join(f"{item['loc'][-1]}: {item['msg']}" for item in error.errors())
    return JSONResponse({"error": facts, "hint": "see /openapi.json"}, 422)


_turns = asyncio.Semaphore(_AT_ONCE)
_long_turns = asyncio.Semaphore(_AT_ONCE)


async def _in_thread(
    question: Callable[..., Answer], *arguments: Any, is_long: bool = False
) -> Answer:
    """In a thread, few at a time: reading and numpy hold the loop for long. A flame graph never
    waits behind lanes of a week.
    """
    async with _long_turns if is_long else _turns:
        return await asyncio.to_thread(question, *arguments)


def _add_lists(app: FastAPI, recording: ServedRecording) -> None:
    store = recording.store

    @app.get("/api/recording")
    async def the_recording() -> dict[str, Any]:
        return await _in_thread(recording.description)

    @app.get("/api/events")
    async def events(
        from_ns: Moment, to_ns: Moment, limit: Annotated[Whole, Query(ge=1, le=5000)] = 1000
    ) -> dict[str, Any]:
        return await _in_thread(
            _last_rows, store, "events", span_of(from_ns, to_ns), None, limit, is_long=True
        )

    @app.get("/api/tasks")
    async def tasks(from_ns: Moment, to_ns: Moment, cpu: OptionalCpu = None) -> dict[str, Any]:
        cpus = None if cpu is None else [cpu]
        return await _in_thread(
            _last_rows, store, "tasks", span_of(from_ns, to_ns), cpus, answers.MOST_ROWS
        )

    @app.get("/api/gaps")
    async def gaps(from_ns: Moment, to_ns: Moment) -> dict[str, Any]:
        window = span_of(from_ns, to_ns)
        return await _in_thread(answers.gaps_answer, store, window.from_ns, window.to_ns)

    @app.get("/api/report")
    async def report(at_ns: OptionalMoment = None) -> dict[str, Any]:
        return await _in_thread(recording.reports.answer, at_ns, is_long=True)


def _add_lines(app: FastAPI, store: Store) -> None:
    """Lanes that are lines or bars over time."""

    @app.get("/api/cgroups")
    async def cgroups(from_ns: Moment, to_ns: Moment) -> dict[str, Any]:
        window = span_of(from_ns, to_ns)
        return await _in_thread(
            lambda: cgroups_answer(store, window.from_ns, window.to_ns, TimeLimit(TIME_LIMIT_S)),
            is_long=True,
        )

    @app.get("/api/counters")
    async def counters(from_ns: Moment, to_ns: Moment) -> dict[str, Any]:
        window = span_of(from_ns, to_ns)
        return await _in_thread(
            lambda: counters_answer(store, window.from_ns, window.to_ns, TimeLimit(TIME_LIMIT_S)),
            is_long=True,
        )

    history = WaitHistory(store)

    @app.get("/api/waits")
    async def waits(from_ns: Moment, to_ns: Moment) -> dict[str, Any]:
        span = span_of(from_ns, to_ns)
        return await _in_thread(
            lambda: waits_answer(history.longest(span, TimeLimit(TIME_LIMIT_S))), is_long=True
        )


def _last_rows(
    store: Store, table: str, window: Span, cpus: list[int] | None, most: int
) -> dict[str, Any]:
    limit = TimeLimit(TIME_LIMIT_S)
    return answers.rows_answer(
        read_last_rows(store, table, window.from_ns, window.to_ns, cpus, most=most, limit=limit)
    )


def _add_cores(app: FastAPI, recording: ServedRecording, pictures: CorePictures) -> None:
    @app.get("/api/cores", response_class=Response, responses=_BINARY)
    async def cores(
        from_ns: Moment,
        to_ns: Moment,
        columns: Annotated[Whole, Query(ge=1, le=4000)] = 1000,
        delay: bool = True,
    ) -> Response:
        window = span_of(from_ns, to_ns)

        def answer() -> bytes:
            return pictures.answer(
                window.from_ns, window.to_ns, columns, recording.cpus(), with_delay=delay
            )

        return Response(await _in_thread(answer, is_long=True), media_type=MEDIA_TYPE)

    @app.get("/api/worst-cores")
    async def worst_cores(
        from_ns: Moment,
        to_ns: Moment,
        columns: Annotated[Whole, Query(ge=1, le=4000)] = 500,
    ) -> dict[str, Any]:
        window = span_of(from_ns, to_ns)
        return await _in_thread(
            lambda: worst_core_rows(
                recording.store, window, columns, recording.cpus(), TimeLimit(TIME_LIMIT_S)
            ),
            is_long=True,
        )


def _add_heat(app: FastAPI, store: Store) -> None:
    @app.get("/api/heat", response_class=Response, responses=_BINARY)
    async def heat(
        from_ns: Moment,
        to_ns: Moment,
        selection: Annotated[Selection, Depends(selection_of)],
        rows: Annotated[Whole, Query(ge=1, le=1000)] = DEFAULT_ROWS,
        column_s: Annotated[Whole, Query(ge=1, le=86400)] = 1,
    ) -> Response:
        window = span_of(from_ns, to_ns)

        def answer() -> bytes:
            limit = TimeLimit(TIME_LIMIT_S)
            span = window.from_ns, window.to_ns
            return answers.heat_answer(
                read_heat_map(store, *span, selection, rows=rows, column_s=column_s, limit=limit)
            )

        return Response(await _in_thread(answer), media_type=MEDIA_TYPE)


def _add_flame(app: FastAPI, store: Store) -> None:
    @app.get("/api/flame", response_class=Response, responses=_BINARY)
    async def flame(
        from_ns: Moment,
        to_ns: Moment,
        selection: Annotated[Selection, Depends(selection_of)],
        by: Annotated[list[GroupBy] | None, Query()] = None,
        callers: bool = False,
        baseline_from_ns: OptionalMoment = None,
        baseline_to_ns: OptionalMoment = None,
        of: FlameOf = FlameOf.SAMPLES,
        least: Annotated[
            float, Query(ge=0, le=1, description="share of the whole; narrower frames are not sent")
        ] = 0.0,
    ) -> Response:
        baseline = None
        if baseline_from_ns is not None and baseline_to_ns is not None:
            baseline = span_of(baseline_from_ns, baseline_to_ns)
        question = GraphQuestion(
            span_of(from_ns, to_ns), baseline, selection, tuple(by or ()), callers, of, least
        )

        def answer() -> bytes:
            return pack_arrays(*flame_answer(store, question, TimeLimit(TIME_LIMIT_S)))

        return Response(await _in_thread(answer), media_type=MEDIA_TYPE)


def _add_documents(app: FastAPI, recording: ServedRecording, static: Path) -> None:
    @app.get("/api/speedscope", response_class=JSONResponse)
    async def speedscope(
        from_ns: Moment, to_ns: Moment, selection: Annotated[Selection, Depends(selection_of)]
    ) -> Response:
        window = span_of(from_ns, to_ns)
        content = await _in_thread(
            recording.speedscope, recording.store, window.from_ns, window.to_ns, selection
        )
        return Response(content, media_type="application/json")

    @app.get(
        "/api/export", response_class=Response, responses={200: {"content": {"text/html": {}}}}
    )
    async def export(
        from_ns: Moment,
        to_ns: Moment,
        window_from_ns: OptionalMoment = None,
        window_to_ns: OptionalMoment = None,
        state: Annotated[
            str, Query(max_length=2000, description="the page's address after #, to open at")
        ] = "",
    ) -> Response:
        view, chosen = span_of(from_ns, to_ns), []
        if window_from_ns is not None and window_to_ns is not None:
            chosen.append(span_of(window_from_ns, window_to_ns))

        def answer() -> str:
            wanted = Export(view, chosen, state, recording.reports.answer())
            return exported_page(recording.store, recording.description(), wanted, static)

        content = await _in_thread(answer)
        name = (
            f"necroscope-{datetime.fromtimestamp(from_ns // NS_PER_S, UTC):%Y-%m-%dT%H-%M-%SZ}.html"
        )
        headers = {"content-disposition": f'attachment; filename="{name}"'}
        return Response(content, media_type="text/html; charset=utf-8", headers=headers)


_BINARY: Final[dict[int | str, dict[str, Any]]] = {200: {"content": {MEDIA_TYPE: {}}}}
