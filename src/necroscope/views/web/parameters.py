"""The words of a question in an address, and what is wrong with them."""

from typing import Annotated, Any

from fastapi import Query
from pydantic import BaseModel, BeforeValidator

from necroscope.errors import UsageError
from necroscope.model.span import Span
from necroscope.store.choices import WORK, State
from necroscope.store.selection import Selection


def _digits(word: object) -> object:
    """Without this, pydantic reads "+0.0" and "1_0" as whole numbers."""
    if isinstance(word, str) and not (word.isascii() and word.isdigit()):
        raise ValueError("not a whole number")
    return word


Whole = Annotated[int, BeforeValidator(_digits)]
Moment = Annotated[Whole, Query(ge=0, lt=1 << 62, description="ns UTC")]
OptionalMoment = Annotated[Whole | None, Query(ge=0, lt=1 << 62, description="ns UTC")]
OptionalCpu = Annotated[Whole | None, Query(ge=0, le=32767, description="core; all if absent")]
OptionalPid = Annotated[Whole | None, Query(ge=0, lt=1 << 31)]
OptionalText = Annotated[str | None, Query(max_length=500)]


class Problem(BaseModel):
    """What every refusal says: the facts, and the way out."""

    error: str
    hint: str


# By status, for the description of the API.
REFUSALS: dict[int | str, dict[str, Any]] = {
    400: {"model": Problem, "description": "the words are understood and make no sense"},
    401: {"model": Problem, "description": "the token is missing or wrong"},
    403: {"model": Problem, "description": "another site's page asked"},
    421: {"model": Problem, "description": "asked under a name that is not ours"},
    422: {"model": Problem, "description": "a word is missing or not understood"},
    500: {
        "model": Problem,
        "description": "the recording cannot be read, or the page was not built",
    },
}


def span_of(from_ns: int, to_ns: int) -> Span:
    if to_ns <= from_ns:
        raise UsageError("the window ends before it begins", "`to` must be later than `from`")
    return Span(from_ns, to_ns)


def selection_of(
    cpu: OptionalCpu = None,
    pid: OptionalPid = None,
    tid: OptionalPid = None,
    comm: OptionalText = None,
    cgroup: OptionalText = None,
    state: Annotated[
        list[State] | None, Query(description="kernel, user, idle, ...; work if absent")
    ] = None,
    frames: Annotated[
        str | None, Query(max_length=500, description="regular expression on function or module")
    ] = None,
) -> Selection:
    return Selection.of(
        cpus=None if cpu is None else [cpu],
        pids=None if pid is None else [pid],
        tids=None if tid is None else [tid],
        comms=None if comm is None else [comm],
        cgroup=cgroup,
        states=WORK if state is None else state,
        frames=frames,
    )
