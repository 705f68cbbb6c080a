"""What a kernel needs before its root is mounted: a shell, the modules of the disk, and an init
that hands over.

Written as a cpio archive in the "newc" format
(Documentation/driver-api/early-userspace/buffer-format.rst), so that no program is needed for it.
The modules travel to the root, so that one root image serves every kernel.
"""

import lzma
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from tests.kernels.failure import CannotTestError

# Loaded before the root is mounted, in this order; what they depend on comes first. A kernel may
# have some of them built in.
_FOR_THE_ROOT: Final = ("virtio_pci", "virtio_blk", "crc32c_generic", "ext4")
_FOR_THE_TESTS: Final = (
    *(
        "e1000",
        "e1000e",
        "virtio_net",
        "vmxnet3",
        "dummy",
        "veth",
        "autofs4",
        "fuse",
        "overlay",
        "sch_fq_codel",
    ),
    *("ip_tables", "iptable_filter", "xt_tcpudp", "tun", "inet_diag", "tcp_diag", "udp_diag"),
)
_NAMES_FOR_DEPMOD: Final = ("modules.builtin", "modules.order", "modules.builtin.modinfo")
_DIRECTORY, _FILE = 0o040755, 0o100755

_INIT: Final = """\
#!/bin/busybox sh
export PATH=/bin
busybox mkdir -p /proc /dev /root
busybox mount -t proc proc /proc
busybox mount -t devtmpfs devtmpfs /dev
while read -r module; do busybox insmod "$module"; done < /order
busybox mount -t ext4 /dev/vda /root || busybox poweroff -f
busybox mkdir -p /root/lib/modules /root/job
busybox cp -r /lib/modules/* /root/lib/modules/
busybox tar xf /dev/vdb -C /root/job
busybox umount /proc
exec busybox switch_root /root /sbin/init
"""


class Modules:
    """The modules of one kernel's package, with what each depends on."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        found = [path for path in directory.rglob("*.ko*") if ".ko" in path.suffixes]
        self._paths = {path.name.split(".")[0].replace("-", "_"): path for path in found}

    def closure(self, names: Iterable[str]) -> list[str]:
        """These and all they depend on, each after what it needs; unknown names are left out: they
        may be built in.
        """
        ordered: list[str] = []
        for name in names:
            if name in self._paths and name not in ordered:
                ordered += [one for one in self.closure(self._needs(name)) if one not in ordered]
                ordered.append(name)
        return ordered

    def content(self, name: str) -> bytes:
        path = self._paths[name]
        return lzma.decompress(path.read_bytes()) if path.suffix == ".xz" else path.read_bytes()

    def place(self, name: str) -> str:
        """Where it lies below the modules' directory, without compression."""
        return str(self._paths[name].relative_to(self.directory)).removesuffix(".xz")

    def _needs(self, name: str) -> list[str]:
        """The .modinfo section is a row of texts that end with 0."""
        found = re.search(rb"\0depends=([^\0]*)\0", self.content(name))
        return (
            [need.replace("-", "_") for need in found[1].decode().split(",") if need]
            if found
            else []
        )


def write(file: Path, modules: Path, shell: Path) -> None:
    """`modules` is lib/modules/RELEASE of a kernel's package, `shell` a statically linked
    busybox.
    """
    archive = _Archive()
    own = Modules(modules)
    home = f"lib/modules/{modules.name}"
    archive.add_file("bin/busybox", shell.read_bytes())
    archive.add_file("init", _INIT.encode())
    needed = own.closure(_FOR_THE_ROOT)
    if not any(modules.glob("modules.builtin")):
        raise CannotTestError(f"{modules.name}: its package holds no list of what is built in")
    archive.add_file("order", "".join(f"/{home}/{own.place(name)}\n" for name in needed).encode())
    for name in own.closure([*_FOR_THE_ROOT, *_FOR_THE_TESTS]):
        archive.add_file(f"{home}/{own.place(name)}", own.content(name))
    for name in _NAMES_FOR_DEPMOD:
        if (modules / name).exists():
            archive.add_file(f"{home}/{name}", (modules / name).read_bytes())
    file.write_bytes(archive.finished())


class _Archive:
    def __init__(self) -> None:
        self._entries: dict[str, bytes] = {}

    def add_file(self, name: str, content: bytes) -> None:
        for parent in reversed(Path(name).parents[:-1]):
            self._entries.setdefault(str(parent), self._entry(str(parent), b"", _DIRECTORY))
        self._entries[name] = self._entry(name, content, _FILE)

    def finished(self) -> bytes:
        return b"".join([*self._entries.values(), self._entry("TRAILER!!!", b"", 0)])

    def _entry(self, name: str, content: bytes, mode: int) -> bytes:
        """Thirteen fields of eight hexadecimal digits; name and content are filled up to multiples
        of four.
        """
        encoded = name.encode() + b"\0"
        fields = (
            len(self._entries) + 1,
            mode,
            0,
            0,
            1,
            0,
            len(content),
            0,
            0,
            0,
            0,
            len(encoded),
            0,
        )
        head = b"070701" + b"".join(b"%08X" % field for field in fields) + encoded
        return head + bytes(-len(head) % 4) + content + bytes(-len(content) % 4)
