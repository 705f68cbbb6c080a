"""Frame lines of `perf script`: `ADDRESS symbol+0xOFFSET (module)`, each of the three where -F asks
for it.
"""

import re
from typing import Final

from necroscope.interchange.text_samples import GivenStacks
from necroscope.model.frame import UNKNOWN_USER, Frame
from necroscope.model.names import clean

_LINE: Final = re.compile(
    rb"[ \t]*(?:(?P<address>[0-9a-f]{1,16})(?=[ \t]|$))?[ \t]*(?P<symbol>.*?)"
    rb"(?:[ \t]*\((?P<module>[^()]*(?:\([^()]*\))?)\))?[ \t]*"
)
_OFFSET: Final = re.compile(rb"\+0x[0-9a-f]+$")
_KERNEL_OBJECT: Final = re.compile(rb"([^/]+)\.ko(?:\.\w+)?$")
_PERF_MAP: Final = re.compile(rb"perf-\d+\.map$")
_KERNEL_MODULES: Final = (
    b"[kernel.kallsyms]",
    b"[kernel.vmlinux]",
    b"[kernel]",
    b"[guest.kernel.kallsyms]",
    b"vmlinux",
)
_NOT_KERNEL: Final = (
    b"[unknown]",
    b"[vdso]",
    b"[vsyscall]",
    b"[heap]",
    b"[stack]",
    b"[anon]",
    b"[uprobes]",
)
_FUNCTION_LIMIT: Final = 200
_MODULE_LIMIT: Final = 300


class FrameLines:
    """Stacks by their text. The text of a stack is parsed once; what is kept of it is its hash."""

    def __init__(self, stacks: GivenStacks) -> None:
        self._stacks = stacks
        self._frame_of_line: dict[bytes, tuple[int, str | None]] = {}
        self._frame_of_parts: dict[tuple[int, bytes, bytes, bytes], tuple[int, str | None]] = {}
        self._place_of_text: dict[int, int] = {}

    def place(self, text: bytes) -> int:
        """The place of the stack of this text."""
        key = hash(text)
        place = self._place_of_text.get(key)
        if place is None:
            frames = [self._frame(line) for line in reversed(text.split(b"\n")) if line.strip()]
            place = self._place_of_text[key] = self._stacks.add(
                [number for number, _ in frames], frames[-1][1] if frames else None
            )
        return place

    def forget(self) -> None:
        """If there is much of it; no place may be in use."""
        if self._stacks.is_full:
            self._stacks.clear()
            self._place_of_text.clear()
            self._frame_of_parts.clear()
            self._frame_of_line.clear()

    def _frame(self, line: bytes) -> tuple[int, str | None]:
        """Its number and name."""
        known = self._frame_of_line.get(line)
        if known is None:
            # Most new lines differ from known ones by address and offset alone.
            address, _, rest = line.strip().partition(b" ")
            symbol, _, module = rest.rpartition(b" (")
            key = (len(address), address[:1], symbol.partition(b"+0x")[0], module)
            is_whole = symbol != b"" and not address.strip(b"0123456789abcdef")
            known = self._frame_of_parts.get(key) if is_whole else None
            if known is None:
                frame = parse_frame(line)
                known = self._stacks.frame(frame), frame.function
                if is_whole:
                    self._frame_of_parts[key] = known
            self._frame_of_line[line] = known
        return known


def parse_frame(line: bytes) -> Frame:
    found = _LINE.fullmatch(line[:4096])
    symbol = _OFFSET.sub(b"", found["symbol"]) if found else line.strip()
    module = (found["module"] or b"") if found else b""
    address = found["address"] if found else b""
    if address and not symbol and address.isalpha():
        symbol, address = (
            address,
            b"",
        )  # a function called `feed` or `add`, printed without its address
    if module == b"inlined":
        module = b""
    name = None if symbol in (b"", b"[unknown]") else clean(symbol, _FUNCTION_LIMIT)
    is_high = len(address or b"") == 16 and address[:1] >= b"8"
    return _frame_in(name, module, is_high)


def _frame_in(name: str | None, module: bytes, is_high: bool) -> Frame:
    kernel_object = _KERNEL_OBJECT.search(module)
    if (
        module.startswith(_KERNEL_MODULES)
        or module.endswith(b"/vmlinux")
        or (is_high and module in (b"", b"[unknown]"))
    ):
        return Frame(name, "[kernel]", "kernel", None, None)
    if kernel_object is not None:
        return Frame(name, f"[{clean(kernel_object[1].replace(b'-', b'_'))}]", "kernel", None, None)
    if module.startswith(b"[") and module.endswith(b"]") and not module.startswith(_NOT_KERNEL):
        return Frame(name, clean(module), "kernel", None, None)
    if _PERF_MAP.search(module):
        return Frame(name, "[jit]", "jit", None, None)
    if name is None and module in (b"", b"[unknown]", b"//anon"):
        return UNKNOWN_USER
    return Frame(name, clean(module or b"[unknown]", _MODULE_LIMIT), "user", None, None)
