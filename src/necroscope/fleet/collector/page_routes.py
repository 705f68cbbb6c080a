"""Questions that only the fleet's page asks: what it can offer to choose, and the worst core of
each node in its list.
"""

from typing import Annotated, Any, Final

from fastapi import APIRouter, Query

from necroscope.fleet.ask import LakeQuestions
from necroscope.fleet.collector.access import CollectorOf, Reader
from necroscope.fleet.collector.turns import Turns
from necroscope.fleet.questions.choices import choices
from necroscope.fleet.questions.worst_cores import worst_cores
from necroscope.fleet.span import Span

router: Final = APIRouter(prefix="/v1")
# Small questions, asked by every page that opens: one at a time is enough, and leaves the machine
# to the large ones.
_TURNS: Final = Turns(at_once=1, waiting=10, longest_wait_s=20.0)
_LONGEST_S: Final = 20.0
_SINCE: Final = "-7d"

Moment = Annotated[str, Query(max_length=64, description="ISO 8601, or -7d before now")]
OptionalMoment = Annotated[str | None, Query(max_length=64)]
Json = dict[str, Any]


@router.get("/choices")
def offered(
    grant: Reader, collector: CollectorOf, since: Moment = _SINCE, until: OptionalMoment = None
) -> Json:
    """Events, causes and labels that there are."""
    questions = LakeQuestions(collector.lake, collector.clock_ns(), grant.clusters, _LONGEST_S)
    with _TURNS.turn():
        return choices(questions, Span.parse(since, until, questions.now_ns)).as_json()


@router.get("/worst-cores")
def worst(
    grant: Reader, collector: CollectorOf, since: Moment = _SINCE, until: OptionalMoment = None
) -> Json:
    """Of each node the core that was held most."""
    questions = LakeQuestions(collector.lake, collector.clock_ns(), grant.clusters, _LONGEST_S)
    with _TURNS.turn():
        return worst_cores(questions, Span.parse(since, until, questions.now_ns)).as_json()
