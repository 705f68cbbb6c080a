"""One rank of a process group of torch over gloo: computes, reduces, computes. Its argument is its
plan as JSON.
"""

import json
import sys
from datetime import timedelta

import torch
import torch.distributed as dist
from tests.job_cluster.member_work import MemberWork

TIMEOUT_S = 5


def main(plan: str) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo", timeout=timedelta(seconds=TIMEOUT_S))
    sys.stderr.write("ready\n")
    work = MemberWork(json.loads(plan))
    values = torch.ones(1000)
    while not work.is_over:
        work.step()
        dist.all_reduce(values)
    dist.destroy_process_group()


if __name__ == "__main__":
    main(*sys.argv[1:])
