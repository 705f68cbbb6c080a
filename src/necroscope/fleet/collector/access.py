"""Who asks: the grant of the bearer token, for routes that push and routes that read.

A route of questions takes `grant: Reader` and `collector: CollectorOf`, and asks `collector.lake`
for `grant.clusters` only.
"""

from typing import Annotated, Final

from fastapi import Depends, Request

from necroscope.fleet.collector.admission import Refusal
from necroscope.fleet.collector.collector import Collector
from necroscope.fleet.tokens import Grant, Role

_SCHEME: Final = "bearer "


def _collector(request: Request) -> Collector:
    collector: Collector = request.app.state.collector
    return collector


# All of these are coroutines: as plain functions they would wait for a thread behind slow
# questions, and pushes with them.
async def _collector_of(request: Request) -> Collector:
    return _collector(request)


def _grant_of(request: Request, role: Role) -> Grant:
    header = request.headers.get("authorization", "")
    grant = (
        _collector(request).tokens.grant_of(header[len(_SCHEME) :].strip())
        if header.lower().startswith(_SCHEME)
        else None
    )
    if grant is None:
        facts = "the token is wrong" if header else "the token is missing"
        raise Refusal(
            401,
            facts,
            "Authorization: Bearer TOKEN, with a token from `necroscope fleet token new`",
        )
    if grant.role != role:
        raise Refusal(
            403, f"this token may {grant.role}, not {role}", f"use a token with role {role}"
        )
    return grant


async def _pusher(request: Request) -> Grant:
    return _grant_of(request, "push")


async def _reader(request: Request) -> Grant:
    return _grant_of(request, "read")


Pusher = Annotated[Grant, Depends(_pusher)]
Reader = Annotated[Grant, Depends(_reader)]
CollectorOf = Annotated[Collector, Depends(_collector_of)]
