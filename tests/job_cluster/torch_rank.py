"""One rank of a process group of torch over gloo: computes, reduces, computes. Its arguments: the
core to stay on, how long it goes on, seconds of work per step, and what it does to itself halfway.
"""

import os
import sys
import time
from datetime import timedelta

import torch
import torch.distributed as dist

TIMEOUT_S = 5


def main(core: str, length_s: str, work_s: str, deed: str = "") -> None:
    os.sched_setaffinity(0, {int(core)})
    torch.set_num_threads(1)
    dist.init_process_group("gloo", timeout=timedelta(seconds=TIMEOUT_S))
    sys.stderr.write("ready\n")
    began_s = time.monotonic()
    kept = []
    while time.monotonic() - began_s < float(length_s):
        until_s = time.thread_time() + float(work_s)
        while time.thread_time() < until_s:
            values = torch.rand(150, 150) @ torch.rand(150, 150)
        if deed and time.monotonic() - began_s > float(length_s) / 2:
            if deed == "exception":
                raise ValueError("loss is not finite")
            if deed == "memory":
                kept.append(torch.rand(4_000_000))
        dist.all_reduce(values)
    dist.destroy_process_group()


if __name__ == "__main__":
    main(*sys.argv[1:])
