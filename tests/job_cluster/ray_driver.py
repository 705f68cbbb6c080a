"""A driver of Ray: an actor on each node computes in step with the others, and the driver waits for
all of them. Its arguments: the cluster, how long it goes on, and the plans of its actors as JSON.
"""

import json
import os
import sys
import time
from typing import Any

import ray
from tests.job_cluster.member_work import MemberWork

TIMEOUT_S = 5


@ray.remote(num_cpus=0)
class Actor:
    def begin(self, plan: dict[str, Any]) -> int:
        self.work = MemberWork(plan)
        return os.getpid()

    def step(self) -> None:
        self.work.step()


def main(address: str, length_s: str, said: str) -> None:
    ray.init(address=address, log_to_driver=False)
    plans = json.loads(said)
    actors = [Actor.options(resources={plan["node"]: 0.01}).remote() for plan in plans]
    begun = [actor.begin.remote(plan) for actor, plan in zip(actors, plans, strict=True)]
    pids = ray.get(begun, timeout=60)
    session = ray._private.worker.global_worker.node.session_name.removeprefix("session_")
    job = ray.get_runtime_context().get_job_id()
    sys.stderr.write(json.dumps({"ready": pids, "session": session, "job": job}) + "\n")
    began_s = time.monotonic()
    while time.monotonic() - began_s < float(length_s):
        ray.get([actor.step.remote() for actor in actors], timeout=TIMEOUT_S)


if __name__ == "__main__":
    main(*sys.argv[1:])
