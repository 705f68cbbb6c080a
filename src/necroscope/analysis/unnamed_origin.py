"""What to act on where no mechanism is known: a tracer that is switched on, the merging of equal
pages, who starts the processes that hold the core, else the task itself.
"""

from typing import Final

from necroscope.analysis.attribution import culprit_from
from necroscope.analysis.case import Case
from necroscope.analysis.functions import functions
from necroscope.analysis.report import Culprit, Evidence, Origin
from necroscope.analysis.stacks import Stacks
from necroscope.analysis.task_origin import origin_of

# What runs in every task while a tracer is on.
_TRACING: Final = functions(
    "function_trace_call function_stack_trace_call function_graph_enter* ftrace_graph_caller"
    " ftrace_graph_func ftrace_return_to_handler ftrace_ops_* arch_ftrace_ops_* ftrace_caller*"
    " ftrace_regs_caller* trace_function trace_graph_entry* trace_graph_return*"
    " trace_event_raw_event_* trace_event_buffer_* ring_buffer_lock_reserve"
    " ring_buffer_unlock_commit"
    " __trace_stack kprobe_ftrace_handler kprobe_trace_func uprobe_dispatcher handle_swbp"
    " perf_trace_* perf_tp_event* syscall_trace_enter ptrace_notify ptrace_stop"
)
# Who has switched one on, or reads what it writes.
_TRACERS: Final = functions(
    "tracing_read_pipe tracing_splice_read_pipe tracing_buffers_read tracing_buffers_splice_read"
    " tracing_set_trace_write tracing_set_tracer event_enable_write system_enable_write"
    " ftrace_filter_write ftrace_process_regex register_ftrace_* trace_kprobe_* probes_write"
    " uprobe_register* ptrace_attach ptrace_resume ptrace_request arch_ptrace __x64_sys_ptrace"
    " rb_advance_reader ring_buffer_read_page s_show print_trace_line"
)
_FORKS: Final = functions("kernel_clone _do_fork do_fork copy_process __do_sys_clone*")
_TRACED: Final = 0.15
# mm/ksm.c
_MERGES: Final = functions("ksm_scan_thread ksm_do_scan scan_get_next_rmap_item cmp_and_merge_page")
_MERGED: Final = 0.5
_LEAST_SAMPLES: Final = 3
# New processes come up in this many of the samples that none has most of them.
_ONE_PROCESS: Final = 0.5


def origin_behind(
    case: Case, culprit: Culprit | None, *, is_holder: bool
) -> tuple[Origin | None, list[Evidence]]:
    """The origin, and in words how it is known."""
    return (
        _tracer(case)
        or _merging(case)
        or _parent(case, culprit)
        or (origin_of(culprit) if is_holder else None, [])
    )


def _tracer(case: Case) -> tuple[Origin | None, list[Evidence]] | None:
    share = case.samples.now.share(_TRACING)
    if share < _TRACED:
        return None
    traced = f"a tracer is on: it runs in {share:.0%} of what {case.place} does"
    for stacks in (case.samples.machine, case.samples.machine_before):
        most = next(iter(stacks.tasks(_TRACERS)), None)
        if most is not None and most.weight >= _LEAST_SAMPLES:
            text = f"{traced}; {most.comm} reads or sets it"
            origin = origin_of(culprit_from(most, (), case.node))
            return origin, [case.evidence(text, "samples", case.core)]
    return Origin("setting", "kernel tracing"), [case.evidence(traced, "samples", case.core)]


def _merging(case: Case) -> tuple[Origin | None, list[Evidence]] | None:
    """Its thread works at the speed that the setting says, for who asked by madvise(2)."""
    if case.samples.now.share(_MERGES) < _MERGED:
        return None
    text = (
        "the kernel merges equal pages (KSM), of programs that asked for it (MADV_MERGEABLE):"
        " pages_to_scan and sleep_millisecs in /sys/kernel/mm/ksm say how fast, run stops it"
    )
    found = case.evidence(text, "samples", case.core)
    return Origin("setting", "/sys/kernel/mm/ksm"), [found]


def _parent(case: Case, culprit: Culprit | None) -> tuple[Origin | None, list[Evidence]] | None:
    """Of short processes, of which none has most of the core: who forks in their cgroup."""
    if culprit is None or culprit.comm is None or culprit.pid is not None:
        return None
    for stacks in (case.samples.machine, case.samples.machine_before):
        forks = stacks.of(_FORKS).without_task(culprit.comm)
        most = next((task for task in forks.tasks() if task.cgroup == culprit.cgroup), None)
        if most is not None and most.weight >= _LEAST_SAMPLES and _is_one(forks, most.weight):
            text = f"{most.comm} starts processes there, and none of {culprit.comm} lasts"
            origin = origin_of(culprit_from(most, (), case.node))
            return origin, [case.evidence(text, "samples")]
    return None


def _is_one(forks: Stacks, weight: int) -> bool:
    return weight >= _ONE_PROCESS * forks.total
