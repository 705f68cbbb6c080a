"""Processes are made and ended faster than they do anything.

Signature: a core in system mode in fork, exec and exit (copy_process, copy_page_range,
load_elf_binary, exit_mmap), spread over many processes that live for milliseconds; a large parent
makes each fork more expensive.
Confirming signal: these in a third of what runs on a core that is mostly in the kernel, of a dozen
processes and more per second.
Source: kubernetes #61793, #10451, #23008 (du and find of cadvisor); containerd #5113 (exec probes);
kernel/fork.c.
"""

from dataclasses import replace
from typing import Final

import numpy as np

from necroscope.analysis.case import Case
from necroscope.analysis.cause import Assessment, Cause, Signature
from necroscope.analysis.functions import functions
from necroscope.analysis.report import WillNotHelp
from necroscope.analysis.task_origin import origin_of
from necroscope.analysis.thresholds import Threshold, Thresholds
from necroscope.model.units import NS_PER_S

FORKS: Final = functions(
    "kernel_clone _do_fork do_fork copy_process dup_mm dup_mmap copy_page_range copy_mm"
    " __x64_sys_clone __do_sys_clone* __x64_sys_vfork __do_sys_vfork __x64_sys_fork"
    " __arm64_sys_clone*"
)
EXECS: Final = functions(
    "do_execveat_common* __do_execve_file* do_execve bprm_execve exec_binprm search_binary_handler"
    " load_elf_binary load_script begin_new_exec flush_old_exec exec_mmap"
)
EXITS: Final = functions(
    "do_exit do_group_exit exit_mmap exit_mm mmput __mmput release_task wait_consider_task do_wait"
)
LIFE: Final = FORKS | EXECS | EXITS
SIGNATURE: Final = Signature(
    LIFE,
    "making and ending processes",
    least=Threshold(0.2, "a shell script or a build has a fifth of a core for a moment"),
    confirmed=Threshold(0.3, "a third of the core goes into processes instead of their work"),
)
LIMITS: Final = Thresholds(
    in_kernel=Threshold(0.5, "of the core's time: a compiler's short processes are in user mode"),
    begun=Threshold(0.1, "fork and exec alone: the end of one large process is not churn"),
    new_pids_per_s=Threshold(12.0, "seen in samples, which miss the shortest: many more are made"),
    shortest_s=Threshold(3.0, "in a shorter stretch every process is new"),
)


def assess(case: Case) -> Assessment | None:
    found = SIGNATURE.match(case)
    if found is None or case.core is None:
        return None
    new_per_s = _new_per_s(case)
    is_churn = (
        case.samples.now.share(FORKS | EXECS) >= case.limits.begun
        and new_per_s >= case.limits.new_pids_per_s
        and (case.counters.share("kernel") or 0.0) >= case.limits.in_kernel
    )
    found = replace(found, culprit=case.culprit(FORKS) or found.culprit)
    text = f"{new_per_s:.0f} new processes per second appear in the core's samples"
    return found.assessment(
        summary=(
            f"{found.who} starts processes that hardly run: that is {found.share:.0%} of what"
            f" {case.place} does{case.beat}"
        ),
        origin=origin_of(found.culprit),
        evidence=[case.evidence(text, "samples", case.core)],
        fix=(
            (
                f"have {found.who} query in process, or less often, instead of running a program"
                " per query"
            ),
        ),
        is_confirmed=is_churn,
    )


def _new_per_s(case: Case) -> float:
    """Processes first seen after the first second: what ran there already is not new."""
    now = case.samples.now
    if now.elapsed_s < case.limits.shortest_s or not now.total:
        return 0.0
    order = np.argsort(now.samples.time_ns, kind="stable")
    _, first = np.unique(now.samples.pid[order], return_index=True)
    began_ns = now.samples.time_ns[order][first]
    return float((began_ns > began_ns.min() + NS_PER_S).sum()) / (now.elapsed_s - 1.0)


CAUSE = Cause(
    slug="fork-exec-churn",
    title="short-lived processes are started all the time",
    confirming=(
        "fork, exec and exit in a third of the samples of a core in the kernel, with a dozen new"
        " processes per second"
    ),
    would_confirm="the rate of `processes` in /proc/stat, and who forks (perf trace -e clone*)",
    assess=assess,
    signature=SIGNATURE,
    thresholds=LIMITS,
    ordinary_s=5.0,
    fix=(
        "posix_spawn or vfork in large parents: no page tables are copied",
        (
            "fewer exec probes, or HTTP or gRPC probes; disk usage from project quotas or the"
            " runtime, not du"
        ),
        "a crash loop starts processes too: see the restarts of units and containers",
    ),
    verify=("the rate of `processes` in /proc/stat falls by an order of magnitude",),
    will_not_help=(
        WillNotHelp(
            "a faster disk", "the programs are in memory; setting up address spaces is what costs"
        ),
        WillNotHelp(
            "looking for the hot process", "each lives for milliseconds: look for the parent"
        ),
    ),
)
