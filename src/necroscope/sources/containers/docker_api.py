"""Docker's Engine API, which Podman serves too (docs.docker.com/engine/api, v1.41): list, inspect,
events. Pure parsing.

Command lines, environments and labels are in these answers as well; of them only the kubelet's own
labels are kept.
"""

import json
import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final, NamedTuple
from urllib.parse import quote

from necroscope.errors import SourceUnavailable
from necroscope.model.names import clean
from necroscope.model.pod_owners import owner_labels
from necroscope.model.units import NS_PER_S
from necroscope.sources.containers.container_state import ContainerState

LIST: Final = "/containers/json?all=1"
# Podman calls a death `died` in its own words and `die` in Docker's.
_FILTERS: Final = quote('{"type":["container"],"event":["die","died","start","oom"]}', safe="")
_KINDS: Final = {
    "die": "container_die",
    "died": "container_die",
    "start": "container_start",
    "oom": "container_oom",
}
_POD_LABELS: Final = tuple(
    f"io.kubernetes.{name}" for name in ("container.name", "pod.name", "pod.namespace", "pod.uid")
)
_STAMP: Final = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?\d*(Z|[+-]\d\d:\d\d)")
_ID: Final = re.compile(r"[0-9a-f]{12,64}")


class ListedContainer(NamedTuple):
    """A container as the list reports it."""

    container: str
    name: str
    state: str


class ContainerEvent(NamedTuple):
    time_ns: int
    kind: str
    container: str
    name: str
    image: str
    exit_code: int | None


def inspect_target(container: str) -> str:
    return f"/containers/{container}/json"


def events_target(since_ns: int, until_ns: int, *, is_podman: bool) -> str:
    """Docker ends the answer at `until`; Podman 4 answers nothing when given one, and ends by
    `stream=false`.
    """
    end = "stream=false" if is_podman else f"until={_seconds(until_ns)}"
    return f"/events?since={_seconds(since_ns)}&{end}&filters={_FILTERS}"


def parse_list(body: bytes) -> list[ListedContainer]:
    """The containers there are, running or not."""
    found = []
    for item in _json(body):
        container = str(item["Id"])
        if _ID.fullmatch(container):
            name = str((item.get("Names") or [""])[0]).removeprefix("/")
            found.append(ListedContainer(container, clean(name), clean(str(item.get("State", "")))))
    return found


def parse_inspect(body: bytes, runtime: str) -> ContainerState:
    item = _json(body)
    state = item["State"]
    # With a start the daemon forgets how it ended before.
    has_ended = _stamp_ns(state.get("FinishedAt")) is not None and state.get("Status") != "running"
    found = ContainerState(
        container=clean(str(item["Id"])),
        runtime=runtime,
        name=clean(str(item.get("Name", "")).removeprefix("/")),
        image=clean(str((item.get("Config") or {}).get("Image") or item.get("Image") or ""))
        or None,
        state=clean(str(state.get("Status", ""))) or None,
        restarts=int(item.get("RestartCount") or 0),
        exit_code=int(state.get("ExitCode") or 0) if has_ended else None,
        oom_killed=bool(state.get("OOMKilled")) if has_ended else None,
        pid=int(state.get("Pid") or 0) or None,
        started_ns=_stamp_ns(state.get("StartedAt")),
        finished_ns=_stamp_ns(state.get("FinishedAt")),
    )
    return _with_pod(found, (item.get("Config") or {}).get("Labels") or {})


def _with_pod(state: ContainerState, labels: Mapping[str, object]) -> ContainerState:
    """The kubelet's labels, where it runs its pods by Docker (cri-dockerd)."""
    name, pod, namespace, uid = (
        clean(str(labels[key])) if key in labels else None for key in _POD_LABELS
    )
    if not uid:
        return state
    return state._replace(
        name=name or state.name,
        pod=pod,
        namespace=namespace,
        pod_uid=uid,
        owner_labels=owner_labels(labels),
    )


def parse_events(body: bytes) -> list[ContainerEvent]:
    """One JSON object a line; a line cut off at the end is left."""
    events = []
    for line in body.splitlines():
        try:
            event = json.loads(line)
            actor = event["Actor"]
            known = actor.get("Attributes") or {}
            kind = _KINDS[event["Action"]]
            code = (
                known.get("exitCode", known.get("containerExitCode"))
                if kind == "container_die"
                else None
            )
            container, name, image = (
                clean(str(text))
                for text in (actor["ID"], known.get("name", ""), known.get("image", ""))
            )
            events.append(
                ContainerEvent(
                    int(event["timeNano"]),
                    kind,
                    container,
                    name,
                    image,
                    int(code) if code else None,
                )
            )
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            continue
    return events


def _json(body: bytes) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError) as error:
        raise SourceUnavailable(
            f"an answer of the container API is not valid JSON: {clean(str(error))}"
        ) from None


def _seconds(time_ns: int) -> str:
    return f"{time_ns // NS_PER_S}.{time_ns % NS_PER_S:09d}"


def _stamp_ns(stamp: str | None) -> int | None:
    """RFC 3339 with nanoseconds; year 1 is Go's way to say never."""
    match = _STAMP.fullmatch(stamp or "")
    if match is None or match[1].startswith("0001-"):
        return None
    seconds = int(datetime.fromisoformat(match[1] + match[3].replace("Z", "+00:00")).timestamp())
    return seconds * NS_PER_S + int((match[2] or "0").ljust(9, "0"))
