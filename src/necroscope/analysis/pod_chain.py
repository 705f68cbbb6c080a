"""From a container to its pod and to what made the pod: a container that is deleted comes back as
long as its Deployment, DaemonSet, Job or file is there.

What the recorder saw of the pod's labels is in events of kind `pod_owner`; without one the form of
the pod's name tells.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from shlex import quote
from typing import Any, Final

from necroscope.analysis.event_fields import event_fields
from necroscope.analysis.node import Node
from necroscope.analysis.origin_facts import rows_of
from necroscope.analysis.report import Origin
from necroscope.model.definitions import LONGEST_SEGMENT_NS
from necroscope.model.pod_owners import STATIC, PodOwner, pod_owner
from necroscope.model.span import Span

KIND: Final = "pod_owner"


@dataclass(frozen=True, slots=True)
class PodMaker:
    """Who made a pod of a namespace, and the file of a static one, where they are known."""

    namespace: str
    pod: str
    owner: PodOwner | None
    file: str | None = None

    @property
    def title(self) -> str:
        return f"{self.namespace}/{self.pod}"

    def links(self) -> list[tuple[str, str]]:
        """For the chain of an origin."""
        found = [("pod", self.title)]
        if self.owner is not None and self.owner.kind != STATIC:
            found.append((self.owner.kind, f"{self.namespace}/{self.owner.name}"))
        return [*found, *([("file", self.file)] if self.file else [])]

    def describe(self) -> str | None:
        if self.owner is None:
            return None
        if self.owner.kind == STATIC:
            return f"a static pod of the kubelet: {self.file or self.owner.how}"
        owner = f"{self.owner.kind} {self.namespace}/{self.owner.name}"
        return f"its pod is of {owner}, by {self.owner.how}"

    def hint(self) -> str:
        """What to act on. Who made the pod chose the names, and a person pastes the commands."""
        if self.file is not None:
            return f"unused? move {self.file} away: the kubelet then ends the pod"
        kubectl = f"kubectl -n {quote(self.namespace)}"
        look = f"{kubectl} describe pod {quote(self.pod)}"
        if self.owner is None or self.owner.is_guessed or self.owner.kind == STATIC:
            return look
        kind, name = quote(self.owner.kind.lower()), quote(self.owner.name)
        return f"{look}; unused? {kubectl} delete {kind} {name}"


def pod_maker(
    namespace: str, pod: str, uid: str | None, events: Iterable[Mapping[str, Any]]
) -> PodMaker:
    """`events` are rows of that table; the latest that is of the pod counts."""
    own = [
        fields
        for event in events
        if event["kind"] == KIND and (fields := event_fields(event)).get("pod_uid") == uid
    ]
    if not own:
        return PodMaker(namespace, pod, pod_owner(pod, uid))
    kind, name, how, file = (own[-1].get(key) for key in ("owner_kind", "owner", "how", "file"))
    return PodMaker(
        namespace, pod, PodOwner(str(kind), str(name), str(how)), str(file) if file else None
    )


def with_pod(node: Node, origin: Origin) -> Origin:
    """A container with the pod it is of and what made that; others as they are."""
    if origin.kind != "container":
        return origin
    rows = rows_of(node.columns("containers"), origin)
    named = [place for place, pod in enumerate(rows["pod"]) if pod] if len(rows) else []
    if not named:
        return origin
    namespace, pod, uid = (rows[name][named[-1]] for name in ("namespace", "pod", "pod_uid"))
    span = Span(node.span[0] - LONGEST_SEGMENT_NS, node.span[1])
    maker = pod_maker(str(namespace), str(pod), uid, node.rows("events", span))
    return replace(origin, chain=(*origin.chain, *maker.links()))
