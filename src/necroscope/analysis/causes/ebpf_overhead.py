"""A BPF program of an agent runs in the system calls of all tasks, and they pay for it.

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
from dataclasses import replace
from typing import Final

from necroscope.analysis.case import Case
from necroscope.analysis.cause import Assessment, Cause, Signature
from necroscope.analysis.functions import Functions, functions
from necroscope.analysis.report import Culprit, Origin, WillNotHelp
from necroscope.analysis.stacks import INTERRUPT, Stacks
from necroscope.analysis.thresholds import Threshold

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
SIGNATURE: Final = Signature(
    RUNS,
    "BPF programs at hooks",
    inside=AT_HOOKS,
    without=TEST_RUNS | OWN | INTERRUPT,
    least=Threshold(0.12, "half of what confirms: tracing agents cost a few per cent by design"),
    confirmed=Threshold(0.25, "a quarter of what tasks do in their calls is an agent's work"),
)
_NAME: Final = re.compile(r"bpf_prog_[0-9a-f]{16}_(?P<name>\w+)")
_RECORDER: Final = "necroscope"


def assess(case: Case) -> Assessment | None:
    found = SIGNATURE.match(case)
    if found is None:
        return None
    paid = found.own.of(RUNS, inside=AT_HOOKS)
    programs, payers = _programs(paid), paid.tasks()
    name = f"BPF program {programs[0]}" if programs else "a BPF program"
    bill = ", ".join(f"{task.comm} {task.share:.0%}" for task in payers[:4])
    texts = [f"programs: {', '.join(programs[:4])}"] if programs else []
    if found.culprit is None:
        payer = Culprit(payers[0].comm, payers[0].pid, payers[0].cgroup)
        found = replace(found, culprit=payer)
    return found.assessment(
        summary=(
            f"{name} takes {found.share:.0%} of what runs on {case.place}, paid by"
            f" {payers[0].comm} in its system calls"
        ),
        origin=Origin("kernel", name) if programs else None,
        evidence=[
            case.evidence(text, "samples", case.core)
            for text in [*texts, f"tasks that paid: {bill}"]
        ],
    )


def _programs(paid: Stacks) -> list[str]:
    """Names of the programs on the main path. One that was loaded a moment ago may bear its
    neighbour's name.
    """
    found = [match["name"] for function in paid.path() if (match := _NAME.fullmatch(function))]
    return [name for name in dict.fromkeys(found) if name != _RECORDER]


CAUSE = Cause(
    slug="ebpf-overhead",
    title="an agent's BPF program runs in the system calls of all tasks",
    confirming=(
        "BPF programs at hooks have a quarter of what runs on the core, in tasks and not in"
        " softirqs or test runs"
    ),
    would_confirm=(
        "sysctl kernel.bpf_stats_enabled=1, then run_time_ns and run_cnt of `bpftool prog`"
    ),
    assess=assess,
    signature=SIGNATURE,
    fix=(
        (
            "find the owner: `bpftool prog show` and `bpftool link show` name the program and its"
            " process"
        ),
        (
            "narrow the hook: only the system calls, cgroups or arguments that the agent needs;"
            " filter early in the program"
        ),
        "update the agent, or switch off the feature that needs this program",
    ),
    verify=("bpf_stats: run_time_ns of the program grows by less than a few per cent of a core",),
    will_not_help=(
        WillNotHelp(
            "limiting the agent's CPU", "the time is charged to the tasks that make the calls"
        ),
        WillNotHelp(
            "more cores", "every process pays on each of its system calls, wherever it runs"
        ),
    ),
)
