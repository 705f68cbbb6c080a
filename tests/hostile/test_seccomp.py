"""The recorder under the seccomp profile that deploy/ gives it: it records all the same, and cannot
write into other processes.
"""

import ctypes
import ctypes.util
import errno
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.kernel, pytest.mark.root]

PROFILE = Path(__file__).parents[2] / "deploy/seccomp/necroscope-recorder.json"
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000
WRITE_TO_PARENT = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
libc.process_vm_writev(os.getppid(), None, 0, None, 0, 0)
print(ctypes.get_errno())
"""


def confine() -> None:
    """As a container runtime does, by libseccomp: names that it does not know are left out."""
    profile = json.loads(PROFILE.read_text())
    library = ctypes.CDLL("libseccomp.so.2")
    library.seccomp_init.restype = ctypes.c_void_p
    context = ctypes.c_void_p(library.seccomp_init(_ERRNO | profile["defaultErrnoRet"]))
    for rule in profile["syscalls"]:
        for name in rule["names"]:
            number = library.seccomp_syscall_resolve_name(name.encode())
            library.seccomp_rule_add(context, _ALLOW, number, 0)
    assert library.seccomp_load(context) == 0


needs_libseccomp = pytest.mark.skipif(
    ctypes.util.find_library("seccomp") is None, reason="needs libseccomp"
)


@needs_libseccomp
def test_the_recorder_records_under_its_profile(leak_check, record):
    recorder = record(preexec=confine, reads_kernel_log=True)
    recorder.wait_until(
        lambda: [row for row in recorder.rows("samples") if row["stack"] is not None], 40
    )
    recorder.wait_for_rows("log")
    recorder.wait_for_rows("softirq_delay")
    code, _, said = recorder.stop()
    assert code == 0
    assert "seccomp" not in said
    assert "Traceback" not in said


@needs_libseccomp
def test_under_the_profile_no_process_is_written_to():
    ended = subprocess.run(
        [sys.executable, "-c", WRITE_TO_PARENT],
        stdout=subprocess.PIPE, preexec_fn=confine, check=True, env=dict(os.environ),
    )  # fmt: skip
    assert int(ended.stdout) == errno.ENOSYS
