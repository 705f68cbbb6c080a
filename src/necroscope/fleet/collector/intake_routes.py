"""What nodes send: batches and bundles. Each is measured before it is read, checked before it is
kept, durable before the 200.
"""

import asyncio
import re
import time
from collections.abc import Callable
from typing import Any, Final

from fastapi import APIRouter, Request

from necroscope.fleet.collector.access import CollectorOf, Pusher
from necroscope.fleet.collector.admission import Refusal
from necroscope.fleet.collector.collector import Collector
from necroscope.fleet.inbox import Receipt
from necroscope.fleet.lake import day_of
from necroscope.fleet.lake_tables import DAY_NS
from necroscope.fleet.protocol import (
    BATCHES_PATH,
    BUNDLES_PATH,
    CLOCK_HEADER,
    NODE_HEADER,
    SENT_HEADER,
    TIME_HEADER,
    BadBatch,
    check_not_ahead,
    checked_moment,
    checked_name,
    decode,
)
from necroscope.fleet.tokens import Grant
from necroscope.model.units import format_bytes

router: Final = APIRouter()
# A body that trickles holds memory.
_BODY_TIMEOUT_S: Final = 30.0
_CLOCK: Final = re.compile(r"(-?[0-9]{1,18}) ([0-9]{1,18})", re.ASCII)
_ZSTD_MAGIC: Final = b"\x28\xb5\x2f\xfd"


@router.post(BATCHES_PATH)
async def push_batch(request: Request, grant: Pusher, collector: CollectorOf) -> dict[str, Any]:
    """A batch of rows, as `fleet.protocol.encode` makes it."""
    began_s = time.monotonic()
    _pass_rate(collector, grant.cluster)
    if grant.node is not None:
        _pass_rate(collector, grant.cluster, grant.node)
    limits = collector.limits
    with collector.budget.push(_node(grant)) as take:
        arrived_ns = collector.clock_ns()
        sent_ns, clock = _moment(request, SENT_HEADER, arrived_ns), _clock(request)
        body = await _body(request, limits.body_bytes, take)
        received_ns = collector.clock_ns()
        batch = await asyncio.get_running_loop().run_in_executor(
            collector.decoders, decode, body, limits, received_ns
        )
        _check_node(grant, batch.node)
        if grant.node is None:
            _pass_rate(collector, grant.cluster, batch.node)
        collector.take_quota(
            grant.cluster, batch.node, len(body), batch.days_before(received_ns - DAY_NS)
        )
        await collector.commits.add(Receipt(grant.cluster, received_ns, sent_ns, body, clock))
    metrics = collector.metrics
    metrics.add("batches")
    metrics.add("batch_bytes", len(body))
    metrics.add("ignored", len(batch.ignored))
    metrics.observe("acknowledge_seconds", time.monotonic() - began_s)
    return {
        "batch": batch.batch,
        "rows": batch.rows,
        "ignored": list(batch.ignored),
        "job_deaths": collector.job_deaths.of(grant.cluster, batch.node),
        "arrived_ns": arrived_ns,
        "answered_ns": collector.clock_ns(),
    }


@router.put(BUNDLES_PATH + "{bundle_id}")
async def put_bundle(
    bundle_id: str, request: Request, grant: Pusher, collector: CollectorOf
) -> dict[str, Any]:
    """An evidence bundle of one incident; sent again, it takes the same place."""
    node = checked_name(request.headers.get(NODE_HEADER), f"the header {NODE_HEADER}")
    if "--" in checked_name(bundle_id, "the bundle's id"):
        raise BadBatch(
            "the bundle's id holds `--`, which ends the node's name in its path", "name it without"
        )
    _check_node(grant, node)
    _pass_rate(collector, grant.cluster)
    _pass_rate(collector, grant.cluster, node)
    now_ns = collector.clock_ns()
    time_ns = _moment(request, TIME_HEADER, now_ns) or now_ns
    limit_bytes = collector.limits.bundle_bytes
    with collector.budget.push(_node(grant)) as take:
        body = await _body(request, limit_bytes, take)
        if not body.startswith(_ZSTD_MAGIC):
            raise BadBatch("the body is not a bundle", "a zstd'd tar, as `fleet push` makes it")
        path = f"bundles/cluster={grant.cluster}/date={day_of(time_ns)}/{node}--{bundle_id}.bundle"
        collector.take_quota(grant.cluster, node, len(body))
        await collector.commits.put(path, body)
    collector.metrics.add("bundles")
    return {"bundle": bundle_id, "path": path}


def _pass_rate(collector: Collector, *names: str) -> None:
    wait_s = collector.wait_s(*names)
    if wait_s:
        raise Refusal(
            429, f"{' node '.join(names)} sends too fast", "send larger batches less often", wait_s
        )


def _check_node(grant: Grant, node: str) -> None:
    if grant.node is not None and grant.node != node:
        raise Refusal(
            403,
            f"this token is of node {grant.node}, not of {node}",
            "every node uses its own token",
        )


def _node(grant: Grant) -> tuple[str, str] | None:
    return None if grant.node is None else (grant.cluster, grant.node)


def _moment(request: Request, header: str, now_ns: int) -> int | None:
    text = request.headers.get(header)
    if text is None:
        return None
    moment_ns = checked_moment(
        int(text) if text.isdecimal() and len(text) < 20 else text, f"the header {header}"
    )
    check_not_ahead(moment_ns, f"the header {header}", now_ns)
    return moment_ns


def _clock(request: Request) -> tuple[int, int] | None:
    """What the node measured; a header that is none is as good as none."""
    match = _CLOCK.fullmatch(request.headers.get(CLOCK_HEADER, ""))
    return None if match is None else (int(match[1]), int(match[2]))


async def _body(request: Request, limit_bytes: int, take: Callable[[int], None]) -> bytes:
    announced = request.headers.get("content-length", "")
    if announced.isdecimal() and (len(announced) > 19 or int(announced) > limit_bytes):
        raise _too_large(limit_bytes)
    parts, size_bytes = [], 0
    try:
        async with asyncio.timeout(_BODY_TIMEOUT_S):
            async for part in request.stream():
                parts.append(part)
                size_bytes += len(part)
                if size_bytes > limit_bytes:
                    raise _too_large(limit_bytes)
                take(len(part))
    except TimeoutError:
        raise Refusal(408, "the body did not come in time", "send it again", 1) from None
    return b"".join(parts)


def _too_large(limit_bytes: int) -> Refusal:
    return Refusal(
        413, f"the body is larger than {format_bytes(limit_bytes)}", "send it in smaller parts"
    )
