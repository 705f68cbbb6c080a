"""`hanging_fuse.py MOUNT_POINT FILE`: a file system with one file, `/program`, that stops answering
at SIGUSR1.

Speaks the protocol of /dev/fuse itself (include/uapi/linux/fuse.h). Says `mounted` on standard
output, and after the signal the number of each request that it took and does not answer: whoever
asked can then not even be killed. Closing /dev/fuse, as the death of this process does, lets them
all go.
"""

import ctypes
import os
import signal
import stat
import struct
import sys
from pathlib import Path

LOOKUP, FORGET, GETATTR, OPEN, READ, RELEASE, FLUSH, INIT, BATCH_FORGET = (
    1,
    2,
    3,
    14,
    15,
    18,
    25,
    26,
    42,
)
NO_ANSWER = (FORGET, BATCH_FORGET)
ROOT, PROGRAM = 1, 2
ENOENT, ENOSYS = 2, 38
KEEP_CACHE = 1 << 1
REQUEST_HEAD = struct.Struct("<IIQQIIIHH")


class Server:
    def __init__(self, device: int, content: bytes) -> None:
        self._device = device
        self._content = content
        self._is_hanging = False

    def hang(self, *_: object) -> None:
        self._is_hanging = True

    def serve(self) -> None:
        while True:
            request = os.read(self._device, 1 << 20)
            _, operation, unique, node, *_ = REQUEST_HEAD.unpack_from(request)
            if operation in NO_ANSWER:
                continue
            if self._is_hanging:
                os.write(1, f"{operation}\n".encode())
                continue
            error, answer = self._answer(operation, node, request[REQUEST_HEAD.size :])
            os.write(self._device, struct.pack("<IiQ", 16 + len(answer), -error, unique) + answer)

    def _answer(self, operation: int, node: int, body: bytes) -> tuple[int, bytes]:
        if operation == INIT:
            readahead = struct.unpack_from("<I", body, 8)[0]
            return 0, struct.pack("<IIIIHHIIHHI28x", 7, 31, readahead, 0, 0, 0, 1 << 16, 1, 0, 0, 0)
        if operation == LOOKUP:
            # Valid for no time at all: every later look at the path asks again.
            return (
                (0, struct.pack("<QQQQII", PROGRAM, 0, 0, 0, 0, 0) + self._attr(PROGRAM))
                if body == b"program\0"
                else (ENOENT, b"")
            )
        if operation == GETATTR:
            return 0, struct.pack("<QII", 0, 0, 0) + self._attr(node)
        if operation == OPEN:
            return 0, struct.pack("<QII", 0, KEEP_CACHE, 0)
        if operation == READ:
            _, offset, size = struct.unpack_from("<QQI", body)
            return 0, self._content[offset : offset + size]
        return (0, b"") if operation in (RELEASE, FLUSH) else (ENOSYS, b"")

    def _attr(self, node: int) -> bytes:
        mode, size = (
            (stat.S_IFDIR | 0o755, 0)
            if node == ROOT
            else (stat.S_IFREG | 0o755, len(self._content))
        )
        return struct.pack("<6Q10I", node, size, 1, 0, 0, 0, 0, 0, 0, mode, 1, 0, 0, 0, 4096, 0)


def main(mount_point: str, file: str) -> None:
    device = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
    server = Server(device, Path(file).read_bytes())
    signal.signal(signal.SIGUSR1, server.hang)
    options = f"fd={device},rootmode=40000,user_id=0,group_id=0,allow_other".encode()
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(b"necroscope-test", os.fsencode(mount_point), b"fuse", 0, options) != 0:
        sys.exit(f"cannot mount: {os.strerror(ctypes.get_errno())}")
    os.write(1, b"mounted\n")
    server.serve()


if __name__ == "__main__":
    main(*sys.argv[1:])
