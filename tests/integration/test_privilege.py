"""Less than everything: as nobody, without BPF, tracefs, PSI or kernel symbols. Each degrades
alone, once told, with a gap.
"""

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.integration import private_view
from tests.integration.conftest import RunningRecorder

from necroscope.store.query import Store

pytestmark = [pytest.mark.kernel, pytest.mark.root]
WITHOUT_PRIVILEGE = {
    "cores",
    "softirqs",
    "runqueue",
    "softnet",
    "interrupts",
    "nics",
    "pressure",
    "memory",
    "cgroups",
}
NO_COUNT_OF_MAPS = "bpf-maps: cannot list BPF maps: CAP_SYS_ADMIN is missing"
SAMPLED = {"samples", "stacks", "frames"}
OF_LOAD = ("more waits than are kept", "the recorder was not run for", "limits of ")
TRACEFS = Path("/sys/kernel/tracing")


@dataclass(frozen=True)
class Outcome:
    """How a recorder that was denied something ended."""

    code: int
    facts: dict[str, Any]
    said: str
    store: Store

    def filled(self) -> set[str]:
        return set(self.store.info().tables)

    def causes(self) -> dict[str, set[str]]:
        """Causes of gaps by table, but for those that are the machine: its load, its cgroups."""
        causes: dict[str, set[str]] = {}
        for row in self.store.rows("gaps", 0, 1 << 62).to_pylist():
            if not row["cause"].startswith(OF_LOAD):
                causes.setdefault(row["table"], set()).add(row["cause"])
        return causes

    def said_once(self, fact: str) -> bool:
        return self.said.count(fact) == 1


def without_bpf() -> None:
    private_view.own_mounts()
    if not (TRACEFS / "events").is_dir():
        private_view.mount("tracefs", TRACEFS)
    private_view.drop_capabilities(private_view.CAP_SYS_ADMIN, private_view.CAP_BPF)


def without_tracefs() -> None:
    private_view.own_mounts()
    for mounted in (TRACEFS, Path("/sys/kernel/debug")):
        private_view.unmount(mounted)
    private_view.drop_capabilities(private_view.CAP_SYS_ADMIN)


def without_pressure() -> None:
    private_view.own_mounts()
    private_view.mount("tmpfs", Path("/proc/pressure"))


def without_kernel_symbols(hidden: Path) -> Callable[[], None]:
    """As kernel.kptr_restrict=2 shows them: every address 0."""
    names = (
        line.split(maxsplit=1)[1] for line in Path("/proc/kallsyms").read_text().splitlines()[:1000]
    )
    hidden.write_text("".join(f"{0:016x} {name}\n" for name in names))

    def preexec() -> None:
        private_view.own_mounts()
        private_view.bind(hidden, Path("/proc/kallsyms"))

    return preexec


@pytest.fixture(scope="module")
def outcomes(
    tmp_path_factory: pytest.TempPathFactory, leaks_of_module: Callable[[], list[str]]
) -> Iterator[dict[str, Outcome]]:
    """All of them record at once: what each is denied is its own."""
    # Directories for pytest's use are closed to nobody.
    open_place = Path(tempfile.mkdtemp(prefix="necroscope-test-"))
    os.chown(open_place, private_view.NOBODY, private_view.NOBODY)
    place = tmp_path_factory.mktemp("denied")
    (place / "stage").mkdir()
    denials: dict[str, Callable[[], None]] = {
        "nobody": lambda: private_view.become_nobody(place / "stage"),
        "bpf": without_bpf,
        "tracefs": without_tracefs,
        "pressure": without_pressure,
        "kernel symbols": without_kernel_symbols(place / "kallsyms"),
    }
    directories = {
        name: open_place / name if name == "nobody" else place / name for name in denials
    }
    recorders: dict[str, RunningRecorder] = {}
    try:
        for name, deny in denials.items():
            recorders[name] = RunningRecorder(
                directories[name], "--for", "4s", preexec=deny, reads_kernel_log=True
            )
        ends = {name: recorder.wait_for_end() for name, recorder in recorders.items()}
        assert leaks_of_module() == []
        yield {name: Outcome(*end, Store.open(directories[name])) for name, end in ends.items()}
    finally:
        for recorder in recorders.values():
            recorder.kill()
        shutil.rmtree(open_place)


def test_nobody_records_what_is_open_to_all_and_is_told_the_rest(outcomes):
    outcome = outcomes["nobody"]
    assert outcome.code == 0
    assert "Traceback" not in outcome.said
    assert outcome.filled() >= WITHOUT_PRIVILEGE
    causes = outcome.causes()
    assert not causes.keys() & WITHOUT_PRIVILEGE
    assert causes.keys() >= SAMPLED | {"softirq_delay", "cgroup_ledger"}
    (cause,) = causes["samples"]
    assert "CAP_PERFMON is missing" in cause
    assert "sysctl kernel.perf_event_paranoid=-1" in cause
    assert outcome.said_once("sysctl kernel.perf_event_paranoid=-1")
    assert any("CAP_SYS_ADMIN" in cause for cause in causes["softirq_delay"])
    if "log" not in outcome.filled():
        assert any(
            "CAP_SYSLOG" in cause and "kernel.dmesg_restrict=0" in cause for cause in causes["log"]
        )


def test_refused_bpf_costs_only_delays_waits_and_the_count_of_maps(outcomes):
    outcome = outcomes["bpf"]
    assert outcome.code == 0
    assert outcome.filled() >= WITHOUT_PRIVILEGE | SAMPLED | {"log"}
    causes = outcome.causes()
    assert causes.pop("populations") == {NO_COUNT_OF_MAPS}
    assert causes.keys() == {"softirq_delay", "waits", "late_beats", "run_delay"}
    for of_table in causes.values():
        assert any("give CAP_BPF and CAP_PERFMON" in cause for cause in of_table)
    assert outcome.said.count("CAP_BPF is missing") == 2, "once of each source"


def test_absent_tracefs_and_its_right_cost_only_the_ledger_and_the_count_of_maps(outcomes):
    outcome = outcomes["tracefs"]
    assert outcome.code == 0
    assert outcome.filled() >= WITHOUT_PRIVILEGE | SAMPLED | {"log", "softirq_delay"}
    causes = outcome.causes()
    assert causes.pop("populations") == {NO_COUNT_OF_MAPS}
    assert causes.keys() == {"cgroup_ledger"}
    assert all(
        "tracefs" in cause and "CAP_SYS_ADMIN" in cause
        for found in causes.values()
        for cause in found
    )


def test_absent_pressure_costs_only_itself(outcomes):
    outcome = outcomes["pressure"]
    assert outcome.code == 0
    assert outcome.filled() >= (WITHOUT_PRIVILEGE - {"pressure"}) | SAMPLED | {
        "softirq_delay",
        "log",
    }
    causes = outcome.causes()
    assert causes.keys() == {"pressure"}
    assert all("/proc/pressure" in cause for cause in causes["pressure"])
    assert "pressure" not in outcome.filled()


def test_hidden_kernel_symbols_leave_addresses_and_the_rest(outcomes):
    outcome = outcomes["kernel symbols"]
    assert outcome.code == 0
    assert outcome.filled() >= WITHOUT_PRIVILEGE | SAMPLED | {"softirq_delay", "log"}
    causes = outcome.causes()
    assert causes.keys() == {"frames"}
    assert all("sysctl kernel.kptr_restrict=1" in cause for cause in causes["frames"])
    assert outcome.said_once("sysctl kernel.kptr_restrict=1")
    frames = outcome.store.samples(0, 1 << 62).frames.to_pylist()
    # The kernel's own record names a BPF program that is loaded meanwhile, as other tests may do.
    kernel = [frame for frame in frames if frame["kind"] == "kernel" and frame["module"] != "[bpf]"]
    assert kernel
    assert all(frame["function"] is None and frame["offset"] is not None for frame in kernel)
