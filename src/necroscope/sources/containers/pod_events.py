"""Rows of `events` that say who made each pod: once per segment, and again when more is known."""

from collections import defaultdict
from collections.abc import Iterable, Mapping

from necroscope.model.event import NOTICE
from necroscope.model.pod_owners import STATIC, PodOwner, pod_owner
from necroscope.model.reading import Row
from necroscope.sources.containers.container_state import ContainerState
from necroscope.sources.containers.static_pods import file_of
from necroscope.sources.service_event import Fields, service_event

_Reported = tuple[PodOwner, str | None]


class PodOwnerEvents:
    def __init__(self) -> None:
        self._reported: dict[str, _Reported] = {}

    def start_segment(self) -> None:
        self._reported.clear()

    def events(
        self, states: Iterable[ContainerState], files: Mapping[str, str], now_ns: int
    ) -> list[Row]:
        """`files` are those of static pods, by the name in them. The labels of a pod are those of
        its sandbox, which is a container of its own.
        """
        pods: dict[str, list[ContainerState]] = defaultdict(list)
        for state in states:
            if state.pod_uid and state.pod:
                pods[state.pod_uid].append(state)
        self._reported = {uid: reported for uid, reported in self._reported.items() if uid in pods}
        rows = []
        for uid, own in pods.items():
            pod = own[0].pod or ""
            labels = tuple(dict.fromkeys(label for state in own for label in state.owner_labels))
            owner = pod_owner(pod, uid, labels)
            file = file_of(pod, files) if owner is not None and owner.kind == STATIC else None
            if owner is not None and self._reported.get(uid) != (owner, file):
                self._reported[uid] = (owner, file)
                rows.append(_row(own[0], owner, file, now_ns))
        return rows


def _row(state: ContainerState, owner: PodOwner, file: str | None, now_ns: int) -> Row:
    pod = f"{state.namespace}/{state.pod}"
    message = f"pod {pod} is of {owner.kind} {owner.name}: {owner.how}"
    fields: Fields = {
        "namespace": state.namespace,
        "pod": state.pod,
        "pod_uid": state.pod_uid,
        "owner_kind": owner.kind,
        "owner": owner.name,
        "how": owner.how,
        "file": file,
    }
    return service_event(now_ns, "pod_owner", message, fields, NOTICE)
