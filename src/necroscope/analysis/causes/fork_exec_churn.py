"""Processes are made and ended faster than they do anything.

Signature: a core in system mode in fork, exec and exit (copy_process, copy_page_range,
load_elf_binary, exit_mmap), spread over many processes that live for milliseconds; a large parent
makes each fork dearer.
Confirming signal: these in a third of what runs on a core that is mostly in the kernel, of a dozen
processes and more a second.
Source: kubernetes #61793, #10451, #23008 (du and find of cadvisor); containerd #5113 (exec probes);
kernel/fork.c.
"""

from typing import Final

import numpy as np

from necroscope.analysis.case import Case
from necroscope.analysis.cause import Assessment, Cause
from necroscope.analysis.evidence import in_samples, suffering, what_held_the_core
from necroscope.analysis.functions import functions
from necroscope.analysis.report import WillNotHelp
from necroscope.analysis.task_origin import origin_of
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
_LEAST: Final = 0.2
_CONFIRMED: Final = 0.3
_IN_KERNEL: Final = 0.5
_PIDS_PER_S: Final = 12.0
_BEGUN: Final = 0.1
_SHORTEST_S: Final = 3.0


def assess(case: Case) -> Assessment | None:
    held = case.samples.now.share(LIFE)
    if held < _LEAST or case.core is None:
        return None
    pids = _new_per_s(case)
    # The end of one large process alone is no churn.
    begun = case.samples.now.share(FORKS | EXECS)
    in_kernel = case.counters.share("kernel") or 0.0
    culprit = case.culprit(FORKS) or case.culprit(LIFE)
    who = culprit.comm if culprit else "a task"
    evidence = [
        in_samples(case, LIFE, "making and ending processes"),
        case.seen(
            f"{pids:.0f} new processes a second come up in the samples of the core",
            "samples",
            case.core,
        ),
        *what_held_the_core(case),
    ]
    return Assessment(
        explains=held,
        is_confirmed=held >= _CONFIRMED
        and begun >= _BEGUN
        and pids >= _PIDS_PER_S
        and in_kernel >= _IN_KERNEL,
        evidence=[*evidence, *suffering(case)],
        would_confirm="the rate of `processes` in /proc/stat, and who forks (perf trace -e clone*)",
        summary=(
            f"{who} starts processes faster than they work: {held:.0%} of what core {case.core}"
            f" does{case.beat}"
        ),
        culprit=culprit,
        origin=origin_of(culprit),
        fix=(
            (
                f"have {who} ask in process instead of running a program for each question, or less"
                " often"
            ),
        ),
    )


def _new_per_s(case: Case) -> float:
    """Processes first seen after the first second: what ran there already is not new, and in a
    moment everybody is.
    """
    samples = case.samples.now.samples
    if case.samples.now.elapsed_s < _SHORTEST_S or not len(samples.time_ns):
        return 0.0
    order = np.argsort(samples.time_ns, kind="stable")
    _, first = np.unique(samples.pid[order], return_index=True)
    began_ns = samples.time_ns[order][first]
    return float((began_ns > began_ns.min() + NS_PER_S).sum()) / (case.samples.now.elapsed_s - 1.0)


CAUSE = Cause(
    slug="fork-exec-churn",
    title="processes are made and ended all the time",
    confirming=(
        "fork, exec and exit in a third of the samples of a core in the kernel, of a dozen"
        " processes a second"
    ),
    assess=assess,
    ordinary_s=5.0,
    fix=(
        "posix_spawn or vfork in large parents: no page tables are copied",
        (
            "fewer exec probes; probes by HTTP or gRPC; disk usage by project quota or from the"
            " runtime instead of du"
        ),
        "a crash loop starts processes too: see the restarts of units and containers",
    ),
    verify=("the rate of `processes` in /proc/stat falls by an order of magnitude",),
    will_not_help=(
        WillNotHelp(
            "a faster disk", "the programs are in memory; their address spaces are what costs"
        ),
        WillNotHelp(
            "looking for the hot process", "each lives for milliseconds: look for the parent"
        ),
    ),
)
