"""The job of the story: two ranks that exchange gradients over TCP, one step after the other, and
give up when the other is silent for too long, as a collective of gloo or NCCL does.

Rank 0 runs in the guest, rank 1 outside, at the end of QEMU's network: `ring.py 1` is started by
QEMU for each connection and speaks through its standard input and output. Standard library only;
torch takes longer to import in the emulator than the whole story.
"""

import os
import socket
import struct
import sys
import time
from pathlib import Path
from typing import BinaryIO

PEER = ("10.0.2.100", 29500)
GRADIENT_BYTES = 64 << 10
# Between a step's two exchanges a real job computes.
_STEP_S = 0.1
_LENGTH = struct.Struct("!I")


def train(timeout_s: float, progress: Path) -> None:
    """Rank 0: each step sends its gradient and takes the sum back."""
    gradient = bytes(GRADIENT_BYTES)
    with socket.create_connection(PEER, timeout=timeout_s) as peer:
        step = 0
        while True:
            try:
                peer.sendall(_LENGTH.pack(len(gradient)) + gradient)
                _receive(peer, len(gradient))
            except TimeoutError:
                # The words of gloo (transport/tcp/unbound_buffer.cc).
                found = f"Timed out waiting {timeout_s * 1000:.0f}ms for recv operation to complete"
                raise RuntimeError(f"allreduce of step {step}: {found}") from None
            step += 1
            progress.write_text(str(step))
            time.sleep(_STEP_S)


def _receive(peer: socket.socket, size: int) -> None:
    while size:
        got = peer.recv(size)
        if not got:
            raise RuntimeError("Connection closed by peer")
        size -= len(got)


def answer(incoming: BinaryIO, outgoing: BinaryIO) -> None:
    """Rank 1: the sum of both gradients is as long as each."""
    while head := incoming.read(_LENGTH.size):
        outgoing.write(incoming.read(_LENGTH.unpack(head)[0]))
        outgoing.flush()


if __name__ == "__main__":
    if sys.argv[1] == "1":
        answer(sys.stdin.buffer, sys.stdout.buffer)
    else:
        os.sched_setaffinity(0, {0})
        train(float(sys.argv[2]), Path(sys.argv[3]))
