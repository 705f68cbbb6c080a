"""Has the far end of the lab's veth pair polled by a kernel thread of its own, bound to the chosen
core (threaded NAPI).

A veth has a NAPI only while its GRO is on, and packets of a local socket pass it only if the
sending end has no TSO (`veth_skb_is_eligible_for_gro`, drivers/net/veth.c). What is set here
belongs to the devices and goes with them.
"""

import array
import fcntl
import os
import socket
import struct
import time
from pathlib import Path
from typing import Final

from necroscope.lab.network import Network
from necroscope.lab.scenario import CannotProvoke
from necroscope.lab.stage import Stage

_SIOCETHTOOL: Final = 0x8946
_ETHTOOL_STSO: Final = 0x1F
_ETHTOOL_SGRO: Final = 0x2C
_START_S: Final = 5.0


def poll_by_thread(stage: Stage, network: Network) -> int:
    """The pid of the thread `napi/DEVICE-N`, which from now on takes the packets on the chosen core
    and no other.
    """
    for device, namespace, command, value in (
        (network.near_device, network.near, _ETHTOOL_STSO, 0),
        (network.far_device, network.far, _ETHTOOL_SGRO, 1),
    ):
        if stage.start(
            set_offload, device, command, value, comm=stage.invent("tool"), netns=namespace
        ).wait(_START_S):
            raise CannotProvoke(f"the offloads of {device} cannot be set: {stage.output()}")
    directory = f"/sys/class/net/{network.far_device}"
    # Steering would put the packets into the core's backlog, which softirqs take and not the
    # thread.
    stage.run(
        ["sh", "-c", f"echo 0 > {directory}/queues/rx-0/rps_cpus && echo 1 > {directory}/threaded"],
        netns=network.far,
    )
    pid = _thread(f"napi/{network.far_device}-")
    os.sched_setaffinity(pid, {stage.core})
    stage.watch_task(pid)
    return pid


def set_offload(device: str, command: int, value: int) -> None:
    """struct ethtool_value of linux/ethtool.h, by the ioctl: there may be no program `ethtool`
    here.
    """
    content = array.array("I", [command, value])
    address, _ = content.buffer_info()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        fcntl.ioctl(control, _SIOCETHTOOL, struct.pack("16sP16x", device.encode(), address))


def _thread(prefix: str) -> int:
    """A kernel thread gets its name a moment after it was made."""
    deadline = time.monotonic() + _START_S
    while time.monotonic() < deadline:
        for comm in Path("/proc").glob("[0-9]*/comm"):
            try:
                if comm.read_text().startswith(prefix):
                    return int(comm.parent.name)
            except OSError:
                continue
        time.sleep(0.05)
    raise CannotProvoke(f"there is no thread {prefix}N", "threaded NAPI needs Linux 5.12")
