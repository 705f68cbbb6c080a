"""The API keeps what its description promises, whatever is asked: it never crashes, nor answers
anything it did not describe.
"""

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.drawn_recording import at, draw
from tests.unit.views.web.test_app import DRAWN

from necroscope.store.query import Store
from necroscope.views.web.app import ServedRecording, make_app

schemathesis = pytest.importorskip(
    "schemathesis", reason="schemathesis is not installed (scripts/setup tests installs it)"
)
TOKEN = {"authorization": "Bearer t"}
QUESTIONS = 15


@pytest.fixture(scope="module")
def described(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    static = tmp_path_factory.mktemp("static")
    (static / "assets").mkdir()
    for name in ("page.js", "page.css"):
        (static / "assets" / name).touch()
    recording = ServedRecording(
        Store.open(draw(tmp_path_factory.mktemp("api") / "r", DRAWN, until=5)),
        "1.0",
        lambda directory, at_ns, span: {"incidents": [], "notes": []},
        lambda store, from_ns, to_ns, selection: b'{"profiles": []}',
    )
    app = make_app(recording, "t", frozenset({"testserver"}), static)
    # Each question of its client would start and end the server.
    schema = schemathesis.openapi.from_asgi("/openapi.json", without_lifespan(app), headers=TOKEN)
    yield schema
    recording.reports.close()


def without_lifespan(app: Any) -> Any:
    async def ask(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            while (await receive())["type"] != "lifespan.shutdown":
                await send({"type": "lifespan.startup.complete"})
            await send({"type": "lifespan.shutdown.complete"})
        else:
            await app(scope, receive, send)

    return ask


PATHS = (
    "cgroups",
    "cores",
    "counters",
    "events",
    "export",
    "flame",
    "gaps",
    "heat",
    "recording",
    "report",
    "speedscope",
    "tasks",
    "waits",
    "worst-cores",
)
CASES = [
    (path, mode)
    for path in PATHS
    for mode in schemathesis.GenerationMode
    if path != "recording" or mode.name == "POSITIVE"
]
# A window that ends before it begins is refused, which no description of single words can say.
schemathesis.checks.load_all_checks()
positive_data_acceptance = schemathesis.checks.CHECKS.get_one("positive_data_acceptance")


def test_every_question_is_described_and_tried(described: Any) -> None:
    assert sorted(described) == [f"/api/{path}" for path in PATHS]


@pytest.mark.parametrize(("path", "mode"), CASES, ids=lambda word: getattr(word, "name", word))
@settings(
    max_examples=QUESTIONS, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck)
)
@given(data=st.data())
def test_whatever_is_asked_is_answered_as_described(
    described: Any, path: str, mode: Any, data: st.DataObject
) -> None:
    case = data.draw(described[f"/api/{path}"]["GET"].as_strategy(generation_mode=mode))
    if data.draw(st.booleans()) and "from_ns" in case.query:
        # Where something was recorded; a moment at random never lies there.
        case.query |= {"from_ns": at(0), "to_ns": at(9)}
    case.call_and_validate(headers=TOKEN, excluded_checks=[positive_data_acceptance])
