"""Frame lines of `perf script`: `ADDRESS symbol+0xOFFSET (module)`, each of the three where -F asks for it."""

import re
from typing import Final

import numpy as np
import numpy.typing as npt

from necroscope.interchange.capture import StackTree
from necroscope.model.frame import UNKNOWN_USER, Frame
from necroscope.model.names import clean

_LINE: Final = re.compile(
    rb"[ \t]*(?:(?P<address>[0-9a-f]{1,16})(?=[ \t]|$))?[ \t]*(?P<symbol>.*?)"
    rb"(?:[ \t]*\((?P<module>[^()]*(?:\([^()]*\))?)\))?[ \t]*"
)
_OFFSET: Final = re.compile(rb"\+0x[0-9a-f]+$")
_KERNEL_OBJECT: Final = re.compile(rb"([^/]+)\.ko(?:\.\w+)?$")
_PERF_MAP: Final = re.compile(rb"perf-\d+\.map$")
_KERNEL_MODULES: Final = (b"[kernel.kallsyms]", b"[kernel.vmlinux]", b"[kernel]", b"[guest.kernel.kallsyms]", b"vmlinux")
_NOT_KERNEL: Final = (b"[unknown]", b"[vdso]", b"[vsyscall]", b"[heap]", b"[stack]", b"[anon]", b"[uprobes]")
_MOST_PLACES: Final = 500_000
_FUNCTION_LIMIT: Final = 200
_MODULE_LIMIT: Final = 300


class FrameLines:
    """Stacks by their text. The text of a stack is parsed once; what is kept of it is its hash."""

    def __init__(self, stacks: StackTree) -> None:
        self._stacks = stacks
        self._frame_of_line: dict[bytes, int] = {}
        self._frame_of_parts: dict[tuple[int, bytes, bytes, bytes], int] = {}
        self._place_of_text: dict[int, int] = {}
        self._numbers = np.zeros(0, np.int32)
        self._new_frames: list[int] = []
        self._new_lengths: list[int] = []

    def place(self, text: bytes) -> int:
        """A place in `numbers` for the stack of this text."""
        key = hash(text)
        place = self._place_of_text.get(key)
        if place is None:
            place = self._place_of_text[key] = len(self._numbers) + len(self._new_lengths)
            frames = [self._frame(line) for line in reversed(text.split(b"\n")) if line.strip()]
            self._new_frames += frames
            self._new_lengths.append(len(frames))
        return place

    def numbers(self) -> npt.NDArray[np.int32]:
        """Stack numbers by place; places given out before stay right only until `place` is called again."""
        new = self._stacks.stacks(np.array(self._new_frames, np.int32), np.array(self._new_lengths, np.int64))
        numbers = self._numbers = np.concatenate((self._numbers, new))
        self._new_frames, self._new_lengths = [], []
        if len(numbers) > _MOST_PLACES:
            self._numbers = np.zeros(0, np.int32)
            self._place_of_text.clear()
            self._frame_of_parts.clear()
        if len(self._frame_of_line) > _MOST_PLACES:
            self._frame_of_line.clear()
        return numbers

    def _frame(self, line: bytes) -> int:
        number = self._frame_of_line.get(line)
        if number is None:
            # Most new lines differ from known ones by address and offset alone.
            address, _, rest = line.strip().partition(b" ")
            symbol, _, module = rest.rpartition(b" (")
            key = (len(address), address[:1], symbol.partition(b"+0x")[0], module)
            is_whole = symbol != b"" and not address.strip(b"0123456789abcdef")
            number = self._frame_of_parts.get(key) if is_whole else self._stacks.frame(parse_frame(line))
            if number is None:
                number = self._frame_of_parts[key] = self._stacks.frame(parse_frame(line))
            self._frame_of_line[line] = number
        return number


def parse_frame(line: bytes) -> Frame:
    found = _LINE.fullmatch(line[:4096])
    symbol = _OFFSET.sub(b"", found["symbol"]) if found else line.strip()
    module = (found["module"] or b"") if found else b""
    address = found["address"] if found else b""
    if address and not symbol and address.isalpha():
        symbol, address = address, b""  # a function called `feed` or `add`, printed without its address
    if module == b"inlined":
        module = b""
    name = None if symbol in (b"", b"[unknown]") else clean(symbol, _FUNCTION_LIMIT)
    is_high = len(address or b"") == 16 and address[:1] >= b"8"
    return _frame_in(name, module, is_high)


def _frame_in(name: str | None, module: bytes, is_high: bool) -> Frame:
    kernel_object = _KERNEL_OBJECT.search(module)
    if module.startswith(_KERNEL_MODULES) or module.endswith(b"/vmlinux") or (is_high and module in (b"", b"[unknown]")):
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
