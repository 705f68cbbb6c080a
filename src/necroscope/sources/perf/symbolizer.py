"""From raw call chains to numbered stacks of the segment.

Samples of one loop differ in their innermost address and in little else, and most programs have no frame pointers, so that their
chains are short. So the callers of the kernel's side, and of a user's side that is long, are looked up as a whole by their bytes
in the ring; everything else address by address, in what is known of the files that are mapped there.
"""

import struct
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from necroscope.perf_abi.event_attr import CONTEXT_KERNEL, CONTEXT_MAX, CONTEXT_USER
from necroscope.sources.perf.address_space import AddressSpace
from necroscope.sources.perf.frame_names import MOST_NAMES, NOT_CODE, FrameNames, Lookup, Wanted
from necroscope.sources.perf.interned import NO_PARENT, Interned

_USER_MARK: Final = struct.pack("<Q", CONTEXT_USER)
_KERNEL_MARK: Final = struct.pack("<Q", CONTEXT_KERNEL)
_KERNEL_ONLY: Final = (CONTEXT_KERNEL,)
# About 300 bytes each.
_MOST_CHAINS: Final = 16_000
# To look up so few callers one by one costs no more than to look them up together.
_FEW_CALLERS: Final = 3
# One for each length of chain, of which the kernel allows 127 addresses.
_LAYOUTS: Final[dict[int, struct.Struct]] = {}


def split_chain(raw: bytes) -> tuple[Sequence[int], Sequence[int]]:
    """Kernel and user addresses, innermost first. All but a part's first are return addresses: one less lies in the call.

    What follows the user marker was read from the program's own stack: nothing in there is a marker, whatever it looks like.
    """
    addresses = _words(raw)
    mark = addresses.index(CONTEXT_USER) if CONTEXT_USER in addresses else len(addresses)
    if mark == 0:
        return [], _calls(addresses[1:])
    kernel, user = addresses[1:mark], addresses[mark + 1 :]
    if addresses[:1] == _KERNEL_ONLY and max(kernel, default=0) < CONTEXT_MAX:
        return _calls(kernel), _calls(user)
    return _calls_between_marks(addresses[:mark]), _calls(user)


def _calls_between_marks(addresses: Sequence[int]) -> list[int]:
    """A hypervisor's or a guest's frames besides the kernel's, or a part without addresses."""
    calls, start = [], 0
    for at in [at for at, address in enumerate(addresses) if address >= CONTEXT_MAX]:
        calls += _calls(addresses[start:at])
        start = at + 1
    return calls + _calls(addresses[start:])


def _words(raw: bytes) -> tuple[int, ...]:
    layout = _LAYOUTS.get(len(raw))
    if layout is None:
        layout = _LAYOUTS[len(raw)] = struct.Struct(f"<{len(raw) // 8}Q")
    return layout.unpack(raw)


def _calls(addresses: Sequence[int]) -> list[int]:
    """The first is where the core was, or the system call's own return, which is right as it is."""
    moved = [address - 1 for address in addresses]
    if moved:
        moved[0] += 1
    return moved


class Symbolizer:
    """Numbers for chains: `number` answers what it can, `resolve` asks for the rest of a drain at once."""

    def __init__(self, lookup: Lookup) -> None:
        self.interned = Interned()
        self.names = FrameNames(lookup, self.interned)
        self._above: dict[tuple[int, bytes], int] = {}
        self._chains = 0
        self._wanted = Wanted()

    @property
    def idle_addresses(self) -> set[bytes]:
        """Innermost addresses, as the ring has them, of a core with nothing to do; the same set for ever."""
        return self.names.idle_addresses

    def number(self, chain: bytes, pid: int, space: AddressSpace) -> int | None:
        """The stack of this chain in the segment; None if names have to be asked for, which `resolve` does for all together."""
        at = chain.find(_USER_MARK)
        if at == 0:
            number = self._user_stack(chain[8:], space)
        elif chain[:8] != _KERNEL_MARK or (at > 0 and at & 7):
            number = None
        elif at < 0:
            number = self._kernel_stack(chain[8:], NO_PARENT)
        else:
            number = self._user_stack(chain[at + 8 :], space)
            if number is not None:
                number = self._kernel_stack(chain[8:at], number)
        if number is None:
            if at >= 0 and not space.is_complete:
                self.names.complete(pid, space)
            number = self._assemble(chain, pid, space, self._wanted)
        return number

    def resolve(self, chains: Sequence[tuple[bytes, int, AddressSpace]]) -> list[int]:
        """Numbers of the chains that `number` had no answer for, in their order."""
        self.names.learn(self._wanted)
        self._wanted = Wanted()
        return [self._settled(*chain) for chain in chains]

    def bound(self, spaces: Callable[[], Iterable[AddressSpace]]) -> None:
        """Empty what has outgrown its bound; call it when no chain waits for its number."""
        if self.names.bound(spaces):
            self._above.clear()
            self._chains = 0
        elif self._chains > _MOST_CHAINS:
            self._forget_stacks(spaces())

    def start_segment(self, spaces: Iterable[AddressSpace]) -> None:
        """Stack numbers begin again; frame numbers too, once there are too many of them."""
        spaces = list(spaces)
        self._forget_stacks(spaces)
        if self.interned.frames_known > MOST_NAMES:
            self.interned = Interned()
            self.names.renumber(self.interned)
            self.names.forget(spaces)
        else:
            self.interned.start_segment()

    def reload_kernel(self) -> None:
        self.names.reload_kernel()
        self._above.clear()

    def _user_stack(self, raw: bytes, space: AddressSpace) -> int | None:
        """The stack of user addresses, innermost first, if all of it is known."""
        if space.located is None:
            return None
        addresses = _words(raw)
        if len(addresses) <= _FEW_CALLERS + 1:
            frames = self._user_frames(addresses, 0, space)
            return None if frames is None else self.interned.stack(reversed(frames))
        innermost = self._user_frames(addresses[:1], 0, space)
        if innermost is None or innermost[0] == self.names.unknown:
            return None
        parent = space.callers.get(raw[8:])
        if parent is None:
            callers = self._user_frames(addresses[1:], 1, space)
            if callers is None:
                return None
            parent = self.interned.stack(reversed(callers))
            if callers[-1] != self.names.unknown:  # garbage never comes again
                space.callers[raw[8:]] = parent
                self._chains += 1
        return self.interned.stack(innermost, parent)

    def _user_frames(self, addresses: Sequence[int], moved: int, space: AddressSpace) -> list[int] | None:
        """Frames of addresses, up to the first that is no code: what lies further out was found by following it."""
        starts, located = space.starts, space.located
        assert located is not None
        frames = []
        for address in addresses:
            end, shift, known = located[bisect_right(starts, address - moved) - 1]
            if address - moved >= end:
                frames.append(self.names.unknown)
                break
            frame = known.get(address - moved - shift)
            if frame is None:
                return None
            frames.append(frame)
            moved = 1
        return frames

    def _kernel_stack(self, raw: bytes, base: int) -> int | None:
        """The stack of kernel addresses, innermost first, on top of `base`, if all of it is known. No marker is ever known."""
        known = self.names.kernel.get
        innermost = known(int.from_bytes(raw[:8], "little"))
        if innermost is None:
            return None
        callers = (base, raw[8:])
        parent = self._above.get(callers)
        if parent is None:
            frames = []
            for address in _words(raw[8:]):
                frame = known(address - 1)
                if frame is None:
                    return None
                frames.append(frame)
            parent = self._above[callers] = self.interned.stack(reversed(frames), base)
            self._chains += 1
        number = self.interned.child(parent, innermost)
        return self.interned.stack((innermost,), parent) if number is None else number

    def _assemble(self, chain: bytes, pid: int, space: AddressSpace, wanted: Wanted) -> int | None:
        """Number the chain frame by frame; None if some of its names have to be asked for, which is noted in `wanted`."""
        kernel, user = split_chain(chain)
        below: list[int | None] = []
        for address in user:
            frame = self.names.of_user(pid, space, address, wanted)
            if frame == NOT_CODE:
                below.append(self.names.unknown)
                break
            below.append(frame)
        above = [self.names.kernel.get(address) or self.names.of_kernel(address, wanted) for address in kernel]
        frames = [frame for frame in (*reversed(below), *reversed(above)) if frame is not None]
        return self.interned.stack(frames) if len(frames) == len(below) + len(above) else None

    def _settled(self, chain: bytes, pid: int, space: AddressSpace) -> int:
        """After asking, what nobody could name is known to be unknown.

        A mapping that came later in the drain may lie over the one that was asked about: then it takes a second question.
        """
        wanted = Wanted()
        number = self._assemble(chain, pid, space, wanted)
        if number is None:
            self.names.learn(wanted)
            number = self._assemble(chain, pid, space, Wanted())
        return NO_PARENT if number is None else number

    def _forget_stacks(self, spaces: Iterable[AddressSpace]) -> None:
        self._chains = 0
        self._above.clear()
        for space in spaces:
            space.callers.clear()
