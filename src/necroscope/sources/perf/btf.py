"""Where the running kernel keeps what BPF programs read: type ids and member offsets from its BTF
(Documentation/bpf/btf.rst).

Ours because a program without a compiler also has no compiler's relocations. One pass over some
150,000 types, by the native library, finds the few that were asked for; nothing of the 6 MB is
kept.
"""

import struct
from collections.abc import Iterable, Sequence
from ctypes import Structure, c_char_p, c_int64, c_uint32, c_uint64, c_void_p
from pathlib import Path
from typing import Final, NamedTuple

from necroscope import native
from necroscope.errors import SourceUnavailable

_LIMIT_BYTES: Final = 64 << 20
_MAGIC: Final = 0xEB9F
_HEADER: Final = struct.Struct("<HBBIIIII")
_TYPE: Final = struct.Struct("<III")
_MEMBER: Final = struct.Struct("<III")
_STRUCT, _UNION, _TYPEDEF, _VOLATILE, _CONST, _RESTRICT = 4, 5, 8, 9, 10, 11
_PTR, _FUNC, _FUNC_PROTO, _TYPE_TAG = 2, 12, 13, 18
_THROUGH: Final = (_TYPEDEF, _VOLATILE, _CONST, _RESTRICT, _TYPE_TAG)
# A name may be that of several types, of different kinds or of different files of the kernel.
_MOST_NAMED: Final = 1024
_SCAN_ARGUMENTS: Final = (
    *(c_char_p, c_uint64, c_uint64, c_void_p, c_uint32),
    *(c_void_p, c_uint64, c_void_p, c_uint32),
)


class _Name(Structure):
    """`struct btf_name` of core/btf.c."""

    _fields_ = tuple((name, c_uint32) for name in ("kind", "text", "number"))


class KernelTypes(NamedTuple):
    """Types of interest by kind and name, and the places of all types they lead to."""

    data: bytes
    strings: int
    named: dict[tuple[int, str], int]
    places: Sequence[int]

    def function(self, name: str) -> int:
        return self._id(_FUNC, name)

    def tracepoint(self, name: str) -> tuple[int, int]:
        """The type id to attach to, and how many arguments a program gets."""
        identity = self._id(_TYPEDEF, f"btf_trace_{name}")
        kind, count, _ = self._follow(self._target(identity))
        if kind == _PTR:
            kind, count, _ = self._follow(self._target(self._target(identity)))
        if kind != _FUNC_PROTO:
            raise SourceUnavailable(f"the kernel's BTF does not describe tracepoint {name}")
        return identity, count - 1  # the first is the program's own data

    def offset(self, structure: str, path: str) -> int:
        """Bytes from the beginning of a structure to `member.member`."""
        place, total = self.places[self._id(_STRUCT, structure)], 0
        for name in path.split("."):
            found = self._member(place, name)
            if found is None:
                raise SourceUnavailable(f"this kernel's {structure} has no {path}")
            bits, target = found
            total += bits // 8
            place = self.places[self._resolve(target)]
        return total

    def has(self, structure: str, path: str) -> bool:
        try:
            self.offset(structure, path)
        except SourceUnavailable:
            return False
        return True

    def _member(self, place: int, name: str) -> tuple[int, int] | None:
        """Also of the structures without a name within it."""
        _, info, _ = _TYPE.unpack_from(self.data, place)
        if info >> 24 & 0x1F not in (_STRUCT, _UNION):
            return None
        for number in range(info & 0xFFFF):
            text, target, bits = _MEMBER.unpack_from(self.data, place + 12 + 12 * number)
            bits = bits & 0xFFFFFF if info >> 31 else bits
            if not text:
                inner = self._member(self.places[self._resolve(target)], name)
                if inner is not None:
                    return bits + inner[0], inner[1]
            elif self._string(text) == name:
                return bits, target
        return None

    def _id(self, kind: int, name: str) -> int:
        try:
            return self.named[kind, name]
        except KeyError:
            raise SourceUnavailable(f"the kernel's BTF does not describe {name}") from None

    def _resolve(self, identity: int) -> int:
        while identity and self._follow(identity)[0] in _THROUGH:
            identity = self._target(identity)
        return identity

    def _follow(self, identity: int) -> tuple[int, int, int]:
        _, info, target = _TYPE.unpack_from(self.data, self.places[identity])
        return info >> 24 & 0x1F, info & 0xFFFF, target

    def _target(self, identity: int) -> int:
        return self._follow(identity)[2]

    def _string(self, offset: int) -> str:
        start = self.strings + offset
        return self.data[start : self.data.index(b"\0", start)].decode("utf-8", "replace")


def parse(data: bytes, wanted: Iterable[str]) -> KernelTypes:
    """Of `wanted` names those that exist; of a file that is no BTF SourceUnavailable."""
    try:
        return _parse(data, wanted)
    except (struct.error, ValueError, IndexError):
        raise SourceUnavailable("the kernel's BTF cannot be read") from None


def read(root: Path, wanted: Iterable[str]) -> KernelTypes:
    path = root / "sys/kernel/btf/vmlinux"
    try:
        with path.open("rb") as file:
            data = file.read(_LIMIT_BYTES)
    except OSError as error:
        raise SourceUnavailable(
            f"cannot read {path}: {error.strerror}", "it needs CONFIG_DEBUG_INFO_BTF"
        ) from None
    return parse(data, wanted)


def _parse(data: bytes, wanted: Iterable[str]) -> KernelTypes:
    magic, _, _, header, types, types_bytes, strings, _ = _HEADER.unpack_from(data)
    start, end, texts = header + types, header + types + types_bytes, header + strings
    if magic != _MAGIC or end > len(data):
        raise ValueError
    names = {}
    for name in wanted:
        found = data.find(b"\0" + name.encode() + b"\0", texts)
        if found >= 0:
            names[found + 1 - texts] = name
    room = types_bytes // _TYPE.size + 1
    places, named = (c_uint32 * room)(), (_Name * _MOST_NAMED)()
    library = native.load({"btf_scan": (c_int64, _SCAN_ARGUMENTS)})
    wanted_texts = (c_uint32 * len(names))(*names)
    if (
        library.btf_scan(
            data, start, end, wanted_texts, len(names), places, room, named, _MOST_NAMED
        )
        < 0
    ):
        raise ValueError
    # Of two types with the same name the first counts.
    numbers = {(one.kind, names[one.text]): one.number for one in reversed(named) if one.kind}
    return KernelTypes(data, texts, numbers, places)
