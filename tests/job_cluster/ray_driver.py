"""A driver of Ray: an actor on each node computes in step with the others, and the driver waits for
all of them. Its arguments: the cluster, how long it goes on, and the actors as JSON.
"""

import json
import os
import sys
import time

import ray

TIMEOUT_S = 5


@ray.remote(num_cpus=0)
class Actor:
    def begin(self, core: int, deed: str, length_s: float) -> int:
        os.sched_setaffinity(0, {core})
        self.deed, self.began_s, self.length_s = deed, time.monotonic(), length_s
        self.kept: list[bytes] = []
        return os.getpid()

    def step(self, work_s: float) -> None:
        until_s = time.thread_time() + work_s
        while time.thread_time() < until_s:
            sum(range(1000))
        if self.deed and time.monotonic() - self.began_s > self.length_s / 2:
            if self.deed == "exception":
                raise ValueError("loss is not finite")
            if self.deed == "memory":
                self.kept.append(os.urandom(16 << 20))


def main(address: str, length_s: str, told: str) -> None:
    ray.init(address=address, log_to_driver=False)
    plans = json.loads(told)
    actors = [Actor.options(resources={plan["node"]: 0.01}).remote() for plan in plans]
    length = float(length_s)
    begun = [
        actor.begin.remote(plan["core"], plan["deed"], length)
        for actor, plan in zip(actors, plans, strict=True)
    ]
    pids = ray.get(begun, timeout=60)
    session = ray._private.worker.global_worker.node.session_name.removeprefix("session_")
    job = ray.get_runtime_context().get_job_id()
    sys.stderr.write(json.dumps({"ready": pids, "session": session, "job": job}) + "\n")
    began_s = time.monotonic()
    while time.monotonic() - began_s < length:
        steps = [
            actor.step.remote(plan["work_s"]) for actor, plan in zip(actors, plans, strict=True)
        ]
        ray.get(steps, timeout=TIMEOUT_S)


if __name__ == "__main__":
    main(*sys.argv[1:])
