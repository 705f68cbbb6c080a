"""The tables of docs/kernels.md, from what the guests answered and which checks held: `python -m
tests.kernels.table`.

By hand: `since` and `else` below, the cells of a row without probes, and the column of the machine
this is developed on.
"""

# ruff: noqa: T201 - it prints a table

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.kernels.architecture import AMD64
from tests.kernels.image import ROOT
from tests.kernels.kernels import KERNELS, kernel_named


@dataclass(frozen=True, slots=True)
class Feature:
    """A row: what it is called, the mainline release that brought it and where that was read, what
    the guests were asked for it.

    `since` is `to 6.11` for what went away after it. With `is_optional` a kernel may also be built
    without it.
    """

    name: str
    since: str
    read_in: str
    probes: tuple[str, ...]
    otherwise: str
    is_optional: bool = False


# `read_in` names a man page (6.03), a document of the kernel, or a commit. "By date": no text was
# found that names the release.
FEATURES: Final = (
    Feature(
        "stacks by `perf_event_open`, user registers",
        "4.1",
        "perf_event_open(2): use_clockid is the newest it asks for, user registers are of 3.7",
        (),
        "a gap that names the capability or sysctl",
    ),
    Feature(
        "names of BPF programs as they load (KSYMBOL records)",
        "5.1",
        "76193a94522f of 2019-01-21 came with the merge of perf-core on 2019-03-06, after 5.0;"
        " perf_event_open(2) says 5.0",
        ("KSYMBOL records of perf",),
        "kallsyms is read again within a minute, as it is for modules",
    ),
    Feature(
        "`CAP_PERFMON`, `CAP_BPF`",
        "5.8",
        "capabilities(7)",
        ("CAP_PERFMON and CAP_BPF",),
        "`CAP_SYS_ADMIN`",
    ),
    Feature(
        "softirq delay by BPF on raw tracepoints, its maps addressed directly",
        "5.2",
        "d8eca5bbb2be of 2019-04-09 (mostlynerdless.de of 2024-05-21: 5.2); raw tracepoints: 4.17"
        " (bcc, kernel-versions.md)",
        ("BPF on raw tracepoints",),
        "tracepoints behind perf, which cost more and need tracefs",
    ),
    Feature(
        "BPF memory charged to the cgroup",
        "5.11",
        "docs.ebpf.io, resource limits; libbpf 216eaa760edf",
        ("BPF memory charged to the cgroup",),
        "RLIMIT_MEMLOCK is raised",
    ),
    Feature(
        "tracefs by a detached mount (`fsopen`)",
        "5.2",
        "syscalls(2)",
        ("tracefs by a detached mount",),
        "a mounted tracefs; without one no `cgroup_ledger`, and before 5.2 no `softirq_delay`",
    ),
    Feature(
        "other processes' files inside their root (`openat2`)",
        "5.6",
        "syscalls(2)",
        ("openat2",),
        "the path is walked step by step without following symlinks",
    ),
    Feature(
        "cgroup ledger by tracepoints",
        "4.9",
        "by date: ed1777de25e4 of 2016-08-10, when 4.8 was being finished; read in 4.11-rc5, with"
        " the same fields in 4.14.332",
        ("cgroup tracepoints",),
        "counts only",
    ),
    Feature(
        "dead cgroups of v2 (`nr_dying_descendants`)",
        "4.14",
        "cgroups(7)",
        ("nr_dying_descendants",),
        "v1: `/proc/cgroups` minus directories",
    ),
    Feature(
        "dead memory cgroups alone (`nr_dying_subsys_memory`)",
        "6.12",
        "ab0312526867 in Tejun Heo's pull request for 6.12 (2024-09-12)",
        ("nr_dying_subsys_memory",),
        "dead cgroups of any controller",
    ),
    Feature(
        "a `memory` line in `/proc/cgroups` on v2",
        "to 6.11",
        "af000ce85293 in the same pull request; from then on only with CONFIG_MEMCG_V1",
        ("memory in /proc/cgroups on v2",),
        "`cgroup.stat`",
        is_optional=True,
    ),
    Feature(
        "pressure (`/proc/pressure`)",
        "4.20",
        "eb414681d5a0 of 2018-10-26; htop 08feb8585bb4, tried on 4.20",
        ("pressure",),
        "a gap",
    ),
    Feature(
        "pressure: `full` of cpu",
        "5.13",
        "Documentation/accounting/psi.rst of 6.1",
        ("pressure: full of cpu",),
        "null, and a gap that says so",
    ),
    Feature(
        "pressure: irq (needs IRQ_TIME_ACCOUNTING)",
        "6.1",
        "52b1364ba0b1 came with the merge of sched-psi on 2022-10-14, for 6.1",
        ("pressure: irq",),
        "no rows",
        is_optional=True,
    ),
    Feature(
        "softnet: backlog and core number",
        "5.10",
        "by date: 7d58e6555870 of 2020-09-21 in net-next, when 5.9 was being finished; absent in"
        " 5.4, present in 5.10",
        ("softnet: core number",),
        "backlog null; lines numbered by the online cores",
    ),
    Feature(
        "negative dentries",
        "5.0",
        "af0c9af1b3f6, by Linus Torvalds on 2019-01-30, between 5.0-rc1 and 5.0",
        ("negative dentries",),
        "null, and a gap that says so",
    ),
    Feature(
        "`Percpu` of meminfo",
        "4.19",
        "by date: 7e8a6304d541, posted on 2018-08-07, a week before the window for 4.19; read in"
        " two vendors' trees of 4.19",
        ("Percpu of meminfo",),
        "null, and a gap that says so",
    ),
    Feature(
        "effective affinity of interrupts",
        "4.13",
        "by date: `genirq: Introduce effective affinity mask` of 2017-06-22 in irq/core, when 4.12"
        " was being finished",
        ("effective affinity",),
        "the affinity that was asked for",
    ),
    Feature(
        "threads of threaded NAPI in `runqueue`",
        "5.12",
        "Documentation/ABI/testing/sysfs-class-net",
        ("threaded NAPI",),
        "there are none",
    ),
    Feature(
        "queue time-outs (`queues/tx-N/tx_timeout`)",
        "3.3",
        "Documentation/ABI/testing/sysfs-class-net-queues",
        ("queue time-outs",),
        "no rows",
    ),
)


def features(runs: Path) -> str:
    answers = {}
    for kernel in KERNELS:
        file = runs / f"{kernel.name}-v2/features/features.json"
        if file.exists():
            answers[kernel.name] = json.loads(file.read_text())
    releases = [_column(name, found["release"]) for name, found in answers.items()]
    rows = [["feature", "since", *releases, "else"]]
    for feature in FEATURES:
        cells = [_cell(feature, found["features"]) for found in answers.values()]
        rows.append([feature.name, feature.since, *cells, feature.otherwise])
    return _table(rows)


def _column(name: str, release: str) -> str:
    """Two numbers of the release, and the architecture if it is not the usual one."""
    architecture = kernel_named(name).architecture
    words = "" if architecture == AMD64 else f" {architecture.debian}"
    return ".".join(release.split(".")[:2]) + words


def _cell(feature: Feature, answers: dict[str, bool]) -> str:
    if not feature.probes:
        return "?"
    return "●" if all(answers.get(probe) for probe in feature.probes) else "○"


def checks(runs: Path) -> str:
    held: dict[str, dict[str, str]] = {}
    for kernel in KERNELS:
        for file in sorted(runs.glob(f"{kernel.name}-*/checks.json")):
            for result in json.loads(file.read_text()):
                if result["kernel"] == kernel.name:
                    held.setdefault(result["check"], {})[kernel.name] = (
                        "holds" if result["holds"] else "fails"
                    )
    names = [
        kernel.name for kernel in KERNELS if any(kernel.name in found for found in held.values())
    ]
    return _table(
        [
            ["check", *names],
            *([check, *(found.get(name, "-") for name in names)] for check, found in held.items()),
        ]
    )


def _table(rows: list[list[str]]) -> str:
    return "\n".join(
        f"| {' | '.join(row)} |" for row in [rows[0], ["---"] * len(rows[0]), *rows[1:]]
    )


if __name__ == "__main__":
    place = Path(sys.argv[1]) if sys.argv[1:] else ROOT / "build/kernels/runs"
    print(features(place), checks(place), sep="\n\n")
