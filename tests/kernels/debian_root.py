"""A small Debian in a directory, with systemd and Python, that does the job it is booted for and
switches itself off.

Of this machine's own architecture it is installed by debootstrap. Of another one its packages are
unpacked and never configured, because their scripts do not run here; the few files that those
scripts would have made are written instead.
"""

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tests.kernels.architecture import Architecture
from tests.kernels.debian import mirrors, unpack
from tests.kernels.programs import run

SUITE: Final = "bookworm"
PYTHON: Final = "3.11"
_PACKAGES: Final = (
    "systemd",
    "systemd-sysv",
    "dbus",
    "python3",
    "python3-pip",
    "iproute2",
    "kmod",
    "procps",
)
# A guest does what it is asked to and nothing else.
_MASKED: Final = (
    "apt-daily.timer",
    "apt-daily-upgrade.timer",
    "dpkg-db-backup.timer",
    "e2scrub_all.timer",
    "fstrim.timer",
)
_UNIT: Final = """\
[Unit]
Description=What this guest was booted for
After=dbus.service

[Service]
Type=oneshot
TimeoutStartSec=infinity
ExecStart=/bin/sh -c 'python3 /job/inside.py >/dev/console 2>&1; exec systemctl poweroff --force --force'

[Install]
WantedBy=multi-user.target
"""
# What the scripts of dbus, systemd and base-passwd leave behind, as far as a guest needs it: a
# machine without an id would enable every unit that it has.
_MADE_BY_SCRIPTS: Final = {
    "machine-id": "6e6563726f73636f7065206775657374\n",
    "passwd": "messagebus:x:100:101::/nonexistent:/usr/sbin/nologin\n",
    "group": "systemd-journal:x:999:\nmessagebus:x:101:\n",
}
# Everything above that a root image depends on.
CONTENT: Final = (SUITE, _PACKAGES, _MASKED, _UNIT, _MADE_BY_SCRIPTS)


def install(root: Path, architecture: Architecture, more: Sequence[str] = ()) -> None:
    """`more` are packages that only this root needs."""
    words = ["debootstrap", "--variant=minbase", f"--include={','.join((*_PACKAGES, *more))}"]
    place = [SUITE, str(root), mirrors()["Debian"]]
    if architecture.is_own:
        run([*words, *place])
    else:
        run([*words, "--foreign", f"--arch={architecture.debian}", *place])
        unpack_all(root)
    units = root / "etc/systemd/system"
    (units / "job.service").write_text(_UNIT)
    (units / "multi-user.target.wants").mkdir(parents=True, exist_ok=True)
    (units / "multi-user.target.wants/job.service").symlink_to("../job.service")
    (units / "default.target").unlink(missing_ok=True)
    (units / "default.target").symlink_to("/lib/systemd/system/multi-user.target")
    for name in _MASKED:
        (units / name).unlink(missing_ok=True)
        (units / name).symlink_to("/dev/null")
    (root / "etc/hostname").write_text("guest\n")
    shutil.rmtree(root / "var/cache/apt/archives", ignore_errors=True)


def unpack_all(root: Path) -> None:
    for package in sorted((root / "var/cache/apt/archives").glob("*.deb")):
        unpack(package, root)
    # debootstrap leaves a link to this machine's own.
    (root / "proc").unlink()
    (root / "proc").mkdir()
    shutil.rmtree(root / "debootstrap")
    for name, lines in _MADE_BY_SCRIPTS.items():
        master = root / f"usr/share/base-passwd/{name}.master"
        before = master.read_text() if master.exists() else ""
        (root / "etc" / name).write_text(before + lines)
