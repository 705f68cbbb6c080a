"""What is known of one container, from any daemon."""

from typing import NamedTuple

from necroscope.model.pod_owners import OwnerLabels
from necroscope.model.reading import Row


class ContainerState(NamedTuple):
    """All but `time` of a row of `containers`; None is not known. `owner_labels` is not in the row:
    it tells who made the pod.
    """

    container: str | None
    runtime: str | None
    name: str | None = None
    image: str | None = None
    namespace: str | None = None
    pod: str | None = None
    pod_uid: str | None = None
    qos: str | None = None
    cgroup: str | None = None
    state: str | None = None
    restarts: int | None = None
    exit_code: int | None = None
    oom_killed: bool | None = None
    pid: int | None = None
    started_ns: int | None = None
    finished_ns: int | None = None
    owner_labels: OwnerLabels = ()

    def row(self, time_ns: int) -> Row:
        return (
            *(
                time_ns,
                self.container,
                self.runtime,
                self.name,
                self.image,
                self.namespace,
                self.pod,
                self.pod_uid,
                self.qos,
            ),
            *(
                self.cgroup,
                self.state,
                self.restarts,
                self.exit_code,
                self.oom_killed,
                self.pid,
                self.started_ns,
            ),
            self.finished_ns,
        )
