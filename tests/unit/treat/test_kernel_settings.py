"""An interrupt is moved, a quota is set, and both are as before after the undo: on a root of files."""

from pathlib import Path

import pytest

from necroscope.errors import UsageError
from necroscope.treat.act_ledger import TreatmentAct
from necroscope.treat.kernel_settings import SettingStep, move_interrupt, set_quota, undo_setting

MOUNTS = (
    "30 25 0:27 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"
    "31 25 0:28 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for path, text in {
        "sys/devices/system/cpu/online": "0-3\n",
        "proc/irq/38/smp_affinity_list": "1\n",
        "proc/self/mountinfo": MOUNTS,
        "proc/1/mountinfo": MOUNTS,
        "sys/fs/cgroup/cpu/jobs/cpu.cfs_quota_us": "-1\n",
        "sys/fs/cgroup/cpu/jobs/cpu.cfs_period_us": "50000\n",
    }.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    return tmp_path


def applied(step: SettingStep) -> TreatmentAct:
    acts: list[TreatmentAct] = []
    step.apply(acts.append, lambda _: None)
    (act,) = acts
    return act


def test_an_interrupt_is_moved_and_moved_back(root: Path) -> None:
    file = root / "proc/irq/38/smp_affinity_list"
    act = applied(move_interrupt(root, 38, "2-3"))
    assert file.read_text() == "2-3"
    assert undo_setting(root, act.data) == "/proc/irq/38/smp_affinity_list is '1' again"
    assert file.read_text() == "1"
    undo_setting(root, act.data)
    assert file.read_text() == "1"


def test_without_yes_the_very_write_is_shown_and_nothing_is_written(root: Path) -> None:
    assert move_interrupt(root, 38, "2").describe() == [
        "interrupt 38 goes to core 2",
        "  write '2' into /proc/irq/38/smp_affinity_list (now '1')",
    ]
    assert (root / "proc/irq/38/smp_affinity_list").read_text() == "1\n"


@pytest.mark.parametrize("cores", ["", "4", "0-9", "x", "1\n2", "../1", "1,,2", "9" * 5000])
def test_cores_that_are_not_there_are_refused(root: Path, cores: str) -> None:
    with pytest.raises(UsageError):
        move_interrupt(root, 38, cores)


def test_an_interrupt_that_is_not_there_is_refused(root: Path) -> None:
    with pytest.raises(UsageError, match="there is no interrupt 99"):
        move_interrupt(root, 99, "2")


def test_a_quota_is_in_the_cgroups_own_period_and_is_taken_back(root: Path) -> None:
    file = root / "sys/fs/cgroup/cpu/jobs/cpu.cfs_quota_us"
    act = applied(set_quota(root, "/jobs", 1.5))
    assert file.read_text() == "75000"
    undo_setting(root, act.data)
    assert file.read_text() == "-1"


@pytest.mark.parametrize("cgroup", ["/", "/../../../etc", "/none", ""])
def test_a_cgroup_that_is_none_to_limit_is_refused(root: Path, cgroup: str) -> None:
    with pytest.raises(UsageError):
        set_quota(root, cgroup, 1)


def test_a_cgroup_that_is_gone_is_nothing_to_undo(root: Path) -> None:
    act = applied(set_quota(root, "/jobs", 1))
    (root / "sys/fs/cgroup/cpu/jobs/cpu.cfs_quota_us").unlink()
    assert undo_setting(root, act.data).endswith("is gone")
