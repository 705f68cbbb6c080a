"""What goes into a guest and what comes out of it, without booting one."""

import io
import json
import tarfile
from pathlib import Path

from tests.kernels.architecture import AMD64, ARM64
from tests.kernels.guest import Boot, Job, Outcome, _command, _unpacked
from tests.kernels.image import Bootable


def test_a_job_brings_the_wheel_the_sets_and_its_steps(tmp_path: Path) -> None:
    (tmp_path / "necroscope-1-py3-none-any.whl").write_bytes(b"wheel")
    job = Job(
        [["record", "true"]], tmp_path / "necroscope-1-py3-none-any.whl", 60, ("tests/conftest.py",)
    )
    job.write(tmp_path / "job.tar")
    with tarfile.open(tmp_path / "job.tar") as archive:
        names = archive.getnames()
        answer = json.load(archive.extractfile("job.json") or io.BytesIO())
    assert {
        "inside.py",
        "necroscope-1-py3-none-any.whl",
        "tests/kernels/sets/plain.py",
        "tests/conftest.py",
    } <= set(names)
    assert not [name for name in names if "__pycache__" in name]
    assert answer == {"steps": [["record", "true"]], "seconds_a_step": 60}


def test_a_guest_has_no_network_but_one_that_is_cut_off(tmp_path: Path) -> None:
    kernel = Bootable("6.0-test", tmp_path / "vmlinuz", tmp_path / "initramfs", AMD64)
    alone = _command(kernel, tmp_path / "root", Boot("v2"), tmp_path)
    assert alone[-2:] == ["-nic", "none"]
    connected = _command(
        kernel, tmp_path / "root", Boot("reset", "preempt=none", network_device="e1000e"), tmp_path
    )
    assert "user,id=net,restrict=on" in connected
    assert "preempt=none" in connected[connected.index("-append") + 1]
    assert any("snapshot=on" in word for word in connected)


def test_a_kernel_is_booted_by_the_emulator_of_its_architecture(tmp_path: Path) -> None:
    for architecture, emulator, console in (
        (AMD64, "qemu-system-x86_64", "ttyS0"),
        (ARM64, "qemu-system-aarch64", "ttyAMA0"),
    ):
        kernel = Bootable("6.0-test", tmp_path / "vmlinuz", tmp_path / "initramfs", architecture)
        command = _command(kernel, tmp_path / "root", Boot("v2"), tmp_path)
        assert emulator in command
        assert f"console={console}" in command[command.index("-append") + 1].split()


def test_results_are_unpacked_and_a_guest_that_gave_none_is_reported(tmp_path: Path) -> None:
    (tmp_path / "console.txt").write_text("Kernel panic")
    (tmp_path / "results.tar").write_bytes(bytes(4096))
    outcome = _unpacked(tmp_path)
    assert (outcome.steps, outcome.console) == ({}, "Kernel panic")
    with tarfile.open(tmp_path / "results.tar", "w") as archive:
        content = json.dumps(
            {"release": "6.0-test", "steps": [{"name": "record", "code": 0, "seconds": 3.5}]}
        ).encode()
        entry = tarfile.TarInfo("results.json")
        entry.size = len(content)
        archive.addfile(entry, io.BytesIO(content))
    outcome = _unpacked(tmp_path)
    assert (outcome.release, outcome.steps["record"]["code"], outcome.said("record")) == (
        "6.0-test",
        0,
        "",
    )


def test_a_guest_that_its_emulator_ended_is_told_from_one_that_failed(tmp_path: Path) -> None:
    assert Outcome(
        tmp_path, "[   45.86] Oops: int3: 0000 [#1] PREEMPT SMP NOPTI"
    ).is_emulators_fault
    assert not Outcome(
        tmp_path, "Kernel panic - not syncing: Attempted to kill init!"
    ).is_emulators_fault
