"""Who is named for work inside interrupts: the kernel's own thread, or a task whose call led there;
not a task that merely was interrupted.
"""

import re
from dataclasses import replace
from typing import Final

from necroscope.analysis.case import Case
from necroscope.analysis.functions import Functions, functions
from necroscope.analysis.report import Culprit
from necroscope.analysis.stacks import INTERRUPT

_KERNEL_THREADS: Final = re.compile(r"(ksoftirqd|napi|irq|swapper|kworker|rcu\w*|migration)\b.*")
# Packets that a task sends to its own machine are received before its call returns.
_CALLS: Final = functions(
    "__sys_* ___sys_* ____sys_* *_sendmsg* ksys_write vfs_write __dev_queue_xmit __dev_direct_xmit"
    " __local_bh_enable_ip"
)
_MOSTLY: Final = 0.5


def interrupt_culprit(case: Case, group: Functions) -> Culprit | None:
    """Its path is known in any case."""
    culprit = case.culprit(group)
    if culprit is None or culprit.comm is None or _KERNEL_THREADS.fullmatch(culprit.comm):
        return culprit
    own = case.samples.now.of_task(culprit.comm, culprit.cgroup, culprit.pid).of(group, INTERRUPT)
    if own.share(_CALLS) >= _MOSTLY:
        return culprit
    return replace(culprit, comm=None, pid=None, cgroup=None, unit=None, container=None)
