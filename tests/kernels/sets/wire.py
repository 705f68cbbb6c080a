"""The guest's network device with its real driver: its interrupt on one core, and a sender on
another that keeps its queue busy.

e1000e cleans its transmit queue in the poll only where it has one interrupt for all
(drivers/net/ethernet/intel/e1000e/netdev.c, e1000e_poll); with several, the queue's own hard
interrupt does it and no starved poll would matter. So it is loaded with one.
"""

import os
import re
import subprocess
import sys
import time
from pathlib import Path

DEVICE = "eth0"
DRIVER = "e1000e"
TIMEOUTS = Path(f"/sys/class/net/{DEVICE}/queues/tx-0/tx_timeout")
_CARRIER = Path(f"/sys/class/net/{DEVICE}/carrier")
# QEMU's own gateway. Nothing listens there, and nothing leaves the guest's QEMU.
_SEND = """
import ctypes, os, socket, time
ctypes.CDLL(None).prctl(15, b'uplink', 0, 0, 0)
os.sched_setaffinity(0, {0})
sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
# A packet counts against its socket until the poll has freed it: by default the socket would be full before the queue.
sender.setsockopt(socket.SOL_SOCKET, 32, 1 << 24)  # SO_SNDBUFFORCE
sender.connect(("10.0.2.2", 9))
payload = bytes(1200)
while True:
    for _ in range(32):
        try:
            sender.send(payload)
        except OSError:
            time.sleep(0.01)
    time.sleep(0.05)
"""


def bring_up(core: int) -> int:
    """The number of the device's interrupt, which `core` alone takes from now on."""
    _run("modprobe", DRIVER, "IntMode=1")
    _run("ip", "address", "replace", "10.0.2.15/24", "dev", DEVICE)
    _run("ip", "link", "set", DEVICE, "up")
    while _CARRIER.read_text().strip() != "1":
        time.sleep(0.1)
    found = re.search(
        rf"^ *(\d+):.*\b{DEVICE}$", Path("/proc/interrupts").read_text(), re.MULTILINE
    )
    if found is None:
        raise SystemExit(f"{DEVICE} has no interrupt")
    Path(f"/proc/irq/{found[1]}/smp_affinity_list").write_text(str(core))
    return int(found[1])


def start_sender() -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", _SEND])


def timeouts() -> int:
    """How often the kernel's watchdog found the transmit queue stuck."""
    return int(TIMEOUTS.read_text())


def take_unit(name: str, command: str, *, cpu: int | None = None, extra: str = "") -> None:
    """A real service of the guest's systemd; written, not yet started."""
    affinity = f"CPUAffinity={cpu}\n" if cpu is not None else ""
    text = f"[Unit]\nStartLimitIntervalSec=0\n[Service]\nExecStart={command}\n{affinity}{extra}"
    Path(f"/run/systemd/system/{name}.service").write_text(text)
    _run("systemctl", "daemon-reload")


def systemctl(*words: str) -> None:
    _run("systemctl", *words)


def _run(*command: str) -> None:
    done = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}: {done.stdout.strip()}")


def own_core() -> None:
    """What drives the test stays off the core that is held."""
    os.sched_setaffinity(0, {0})
