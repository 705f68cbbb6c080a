"""A BPF program of an agent runs in everybody's system calls, and they pay for it.

Signature: system time spread over system calls of processes that have nothing to do with one
another, with a BPF program (`bpf_prog_TAG_NAME`) and its map functions below a tracepoint, kprobe,
cgroup or LSM hook in their stacks; the agent that loaded it looks light.
Confirming signal: BPF programs below such hooks have a quarter of what runs on the core, in tasks:
not in interrupts or softirqs, not in test runs of a program's owner, and not the recorder's own. A
datapath (XDP, traffic control) is work on packets itself, and a hooked function that a trampoline
calls (fexit) is the task's own work.
Source: falco #1710, #2475, #3630; tetragon #3428; cilium #27661; datadog-agent pull request 25330;
kernel/trace/bpf_trace.c.
"""

import re
from typing import Final

from necroscope.analysis.case import Case
from necroscope.analysis.cause import Assessment, Cause
from necroscope.analysis.evidence import in_samples, suffering, what_held_the_core
from necroscope.analysis.functions import Functions, functions
from necroscope.analysis.report import Culprit, Origin, WillNotHelp
from necroscope.analysis.stacks import INTERRUPT, Stacks

# Where the kernel calls programs that others have attached, over versions 4.14 to 7.x; not where
# packets are sent through one.
HOOKS: Final = functions(
    "bpf_trace_run* __bpf_trace_run trace_call_bpf perf_call_bpf_enter perf_call_bpf_exit"
    " kprobe_perf_func kretprobe_perf_func uprobe_perf_func __bpf_prog_enter* __bpf_prog_exit*"
    " bpf_lsm_* __cgroup_bpf_* bpf_prog_run_array* bpf_kprobe_multi_* kprobe_multi_link_handler"
    " uprobe_multi_link_handler bpf_iter_run_prog"
)
# The trampoline of fexit and fmod_ret calls the hooked function as well: below it only a program's
# frame is a program's time. Elsewhere the hook tells it alone, for programs of old kernels have no
# names unless net.core.bpf_jit_kallsyms is set.
TRAMPOLINES: Final = functions("bpf_trampoline_*")
PROGRAMS: Final = Functions(re.compile(r"bpf_prog_[0-9a-f]{16}(_.*)?|___bpf_prog_run"))
RUNS: Final = HOOKS | PROGRAMS
AT_HOOKS: Final = HOOKS | TRAMPOLINES
# A test run is a program's owner trying it out.
TEST_RUNS: Final = functions("bpf_test_run bpf_test_run_* bpf_prog_test_run* __bpf_prog_test_run*")
# The recorder's own programs measure softirqs.
OWN: Final = functions(
    "perf_trace_softirq* perf_trace_cgroup* __traceiter_softirq_* __bpf_trace_softirq*"
)
_LEAST: Final = 0.12
_CONFIRMED: Final = 0.25
_NAME: Final = re.compile(r"bpf_prog_[0-9a-f]{16}_(?P<name>\w+)")
_RECORDER: Final = "necroscope"


def assess(case: Case) -> Assessment | None:
    paid = (
        case.samples.now.of(RUNS, inside=AT_HOOKS)
        .without(TEST_RUNS)
        .without(OWN)
        .without(INTERRUPT)
    )
    held = paid.total / case.samples.now.total if case.samples.now.total else 0.0
    if held < _LEAST:
        return None
    programs = _programs(paid)
    payers = paid.tasks()
    name = f"BPF program {programs[0]}" if programs else "a BPF program"
    culprit = case.culprit(RUNS, inside=AT_HOOKS)
    return Assessment(
        explains=held,
        is_confirmed=held >= _CONFIRMED,
        evidence=[
            in_samples(case, RUNS, "BPF programs at hooks", inside=AT_HOOKS),
            *(
                [case.seen(f"programs: {', '.join(programs[:4])}", "samples", case.core)]
                if programs
                else []
            ),
            case.seen(
                "those who paid:"
                f" {', '.join(f'{task.comm} {task.share:.0%}' for task in payers[:4])}",
                "samples",
                case.core,
            ),
            *what_held_the_core(case),
            *suffering(case),
        ],
        would_confirm=(
            "sysctl kernel.bpf_stats_enabled=1, then run_time_ns and run_cnt of `bpftool prog`"
        ),
        summary=(
            f"{name} takes {held:.0%} of what runs on {case.place}, paid by {payers[0].comm} in its"
            " system calls"
        ),
        culprit=(
            culprit
            if culprit is not None
            else Culprit(payers[0].comm, payers[0].pid, payers[0].cgroup)
        ),
        origin=Origin("kernel", name) if programs else None,
    )


def _programs(paid: Stacks) -> list[str]:
    """Names of the programs on the main path. One that was loaded a moment ago may bear its
    neighbour's name.
    """
    found = [match["name"] for function in paid.path() if (match := _NAME.fullmatch(function))]
    return [name for name in dict.fromkeys(found) if name != _RECORDER]


CAUSE = Cause(
    slug="ebpf-overhead",
    title="an agent's BPF program runs in everybody's system calls",
    confirming=(
        "BPF programs at hooks have a quarter of what runs on the core, in tasks and not in"
        " softirqs or test runs"
    ),
    assess=assess,
    fix=(
        "find the owner: `bpftool prog show` and `bpftool link show` name program and process",
        (
            "narrow the hook: only the system calls, cgroups or arguments that the agent needs;"
            " filter first in the program"
        ),
        "update the agent, or switch off the feature that needs this program",
    ),
    verify=("bpf_stats: run_time_ns of the program grows by less than a few per cent of a core",),
    will_not_help=(
        WillNotHelp(
            "limiting the agent's CPU", "the time is booked on those who make the system calls"
        ),
        WillNotHelp(
            "more cores", "every process pays on each of its system calls, wherever it runs"
        ),
    ),
)
