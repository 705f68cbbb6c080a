"""The investigators' own files, as their loop, their shell and their log left them: generated after
the published account (perf in pieces of two minutes at 97 Hz, mpstat by the second, the driver's
lines, /proc/cgroups and find), and what `diagnose` makes of them.
"""

import json
import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

START_S = 1_744_713_000  # 2025-04-15T10:30:00Z
HZ = 97
HELD = range(68, 75)
KUBELET = (
    "entry_SYSCALL_64_after_hwframe ksys_read vfs_read seq_read cgroup_seqfile_show"
    " memcg_numa_stat_show mem_cgroup_nr_lru_pages"
)
LOG = """\
[Tue Apr 15 10:31:14 2025] ena 0000:20:03.0 eth0: TX q 5 is paused for too long (threshold 5000000). Time since last napi 6596000 usec. napi scheduled: 1
[Tue Apr 15 10:31:14 2025] ena 0000:20:03.0 eth0: napi handler hasn't been called for a long time but is scheduled
[Tue Apr 15 10:31:14 2025] ena 0000:20:03.0: Device reset completed successfully, Driver info: Elastic Network Adapter (ENA) v2.11.0g
"""
CGROUPS = """#subsys_name\thierarchy\tnum_cgroups\tenabled
cpuset\t2\t238\t1
cpu\t3\t240\t1
memory\t5\t68680\t1
pids\t7\t240\t1
devices\t9\t235\t1
"""


def run(*words: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "necroscope", *map(str, words)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def sample(at_s: float, cpu: int, task: str, path: str, file: str = "[kernel.kallsyms]") -> str:
    frames = "".join(f"\tffffffff81000010 {name}+0x10 ({file})\n" for name in path.split()[::-1])
    return f"{task} [{cpu:03d}] {at_s:.6f}: cycles: \n{frames}\n"


def stacks(host: str, *, is_held: bool) -> str:
    """Two minutes of a host: a training job on some cores, and the kubelet that reads on core 39."""
    header = f"# ========\n# hostname : {host}\n# os release : 5.4.0-1103-aws\n# ========\n#\n"
    parts = [header]
    for tick in range(120 * HZ):
        at_s = tick / HZ
        parts += [
            sample(5000 + at_s, cpu, "python 4242", "main forward matmul", "/usr/bin/python3")
            for cpu in (3, 17)
            if tick % 3 == 0
        ]
        if is_held and int(at_s) in HELD:
            parts.append(sample(5000 + at_s, 39, "kubelet 1872", KUBELET))
    return "".join(parts)


def mpstat() -> str:
    lines = ["Linux 5.4.0-1103-aws (gpu-7) \t04/15/2025 \t_x86_64_\t(96 CPU)\n\n"]
    names = "CPU    %usr   %nice    %sys %iowait    %irq   %soft  %steal  %guest  %gnice   %idle"
    for second in range(1, 121):
        ended = datetime.fromtimestamp(START_S + second, UTC).strftime("%H:%M:%S")
        lines.append(f"{ended}  {names}\n")
        for cpu in range(96):
            sys = 100 if cpu == 39 and second - 1 in HELD else 1
            usr = 33 if cpu in (3, 17) else 1
            shares = [usr, 0, min(sys, 100), 0, 0, 0, 0, 0, 0, max(0, 100 - usr - sys)]
            shares[0] = 0 if sys == 100 else usr
            lines.append(f"{ended}  {cpu:3}  " + "  ".join(f"{s:.2f}" for s in shares) + "\n")
        lines.append("\n")
    return "".join(lines)


@pytest.fixture(scope="module")
def left_behind(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory after the loop and its `perf script` were run; the captures themselves are not
    kept, as their text is.
    """
    folder = tmp_path_factory.mktemp("captures")
    for host, is_held in (("gpu-7", True), ("gpu-8", False)):
        name = f"perf-{host}-20250415-10-30-00-120s.data"
        (folder / name).write_bytes(b"PERFILE2 is not what is read here")
        (folder / f"{name}.stacks").write_text(stacks(host, is_held=is_held))
        (folder / f"{name}.stacks.stacks").write_text("")
    return folder


@pytest.fixture(scope="module")
def story(left_behind: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("story")
    (folder / "mpstat.txt").write_text(mpstat())
    (folder / "dmesg-gpu-7.txt").write_text(LOG)
    (folder / "cgroups-gpu-7.txt").write_text(CGROUPS)
    found = "".join(f"/sys/fs/cgroup/memory/pod{n}\n" for n in range(240))
    (folder / "find-gpu-7.txt").write_text(found)
    # The next morning.
    for name in ("cgroups-gpu-7.txt", "find-gpu-7.txt"):
        os.utime(folder / name, (START_S + 12 * 3600,) * 2)
    files = [left_behind, *sorted(folder.glob("*.txt"))]
    done = run("import", *files, "--dir", folder / "out", "--json")
    assert done.returncode == 0, done.stderr
    return folder / "out"


def test_files_of_two_hosts_are_two_recordings_and_no_sample_counts_twice(story: Path) -> None:
    assert sorted(os.listdir(story)) == ["gpu-7", "gpu-8"]
    answer = json.loads(run("info", story / "gpu-7", "--json").stdout)
    assert answer["tables"]["samples"] == 2 * 120 * HZ / 3 + len(HELD) * HZ
    assert answer["node"] == "gpu-7"


def test_the_imported_story_has_its_cause_and_its_reader(story: Path) -> None:
    done = run("diagnose", story / "gpu-7", "--json")
    assert done.returncode in (0, 1), done.stderr
    incidents = json.loads(done.stdout)["incidents"]
    [incident] = [one for one in incidents if one["core"] == 39]
    verdict = incident["verdict"]
    assert verdict["cause"] == "zombie-memcg-walk"
    assert (verdict["culprit"]["comm"], verdict["culprit"]["pid"]) == ("kubelet", 1872)
    assert "68,440" in verdict["summary"]
    assert any(event["kind"] == "nic_reset" for event in incident["events"])


def test_the_host_that_was_well_has_no_incident(story: Path) -> None:
    done = run("diagnose", story / "gpu-8", "--json")
    assert json.loads(done.stdout)["incidents"] == []


def test_a_file_that_does_not_say_whose_it_is_is_left_out_and_named(
    left_behind: Path, tmp_path: Path
) -> None:
    (tmp_path / "stray").mkdir()
    log = tmp_path / "stray" / "dmesg.txt"
    log.write_text(LOG)
    done = run("import", left_behind, log, "--dir", tmp_path / "out")
    assert done.returncode == 0
    assert "dmesg.txt does not say whose it is" in done.stdout
