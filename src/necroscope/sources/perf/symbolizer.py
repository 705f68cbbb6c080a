"""From raw call chains to numbered stacks of the segment.

Samples of one loop differ in their innermost address and in little else. So a chain is looked up in three parts, by their bytes
in the ring: the user's side, the kernel's callers on top of it, and the innermost address. Only a part never seen is taken apart.
"""

import struct
from collections.abc import Iterable, Sequence
from typing import Final

from necroscope.perf_abi.event_attr import CONTEXT_KERNEL, CONTEXT_MAX, CONTEXT_USER
from necroscope.sources.perf.address_space import AddressSpace
from necroscope.sources.perf.frame_names import MOST_NAMES, NOT_CODE, FrameNames, Lookup, Wanted
from necroscope.sources.perf.interned import NO_PARENT, Interned

_USER_MARK: Final = struct.pack("<Q", CONTEXT_USER)
_KERNEL_ONLY: Final = (CONTEXT_KERNEL,)
_MOST_CHAINS: Final = 50_000
# One for each length of chain, of which the kernel allows 127 addresses.
_LAYOUTS: Final[dict[int, struct.Struct]] = {}


def split_chain(raw: bytes) -> tuple[Sequence[int], Sequence[int]]:
    """Kernel and user addresses, innermost first. All but a part's first are return addresses: one less lies in the call.

    What follows the user marker was read from the program's own stack: nothing in there is a marker, whatever it looks like.
    """
    addresses = _words(raw)
    at = raw.find(_USER_MARK)
    if at == 0:
        return [], _calls(addresses[1:])
    mark = at // 8 if at > 0 else len(addresses)
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
        self._wanted = Wanted()

    @property
    def idle_addresses(self) -> set[bytes]:
        """Innermost addresses, as the ring has them, of a core with nothing to do; the same set for ever."""
        return self.names.idle_addresses

    def number(self, chain: bytes, pid: int, space: AddressSpace) -> int | None:
        """The stack of this chain in the segment; None if names have to be asked for, which `resolve` does for all together."""
        number = self._known(chain, space)
        if number is None:
            if not space.is_complete and _USER_MARK in chain:
                self.names.complete(pid, space)
            number = self._assemble(chain, pid, space, self._wanted)
        return number

    def resolve(self, chains: Sequence[tuple[bytes, int, AddressSpace]]) -> list[int]:
        """Numbers of the chains that `number` had no answer for, in their order."""
        self.names.learn(self._wanted)
        self._wanted = Wanted()
        return [self._settled(*chain) for chain in chains]

    def _known(self, chain: bytes, space: AddressSpace) -> int | None:
        """The number by the chain's three parts, if each was seen before."""
        at = chain.find(_USER_MARK)
        if at == 0:
            raw = chain[8:16]
            frame = space.names.innermost.get(raw)
            if frame is None:
                frame = self.names.innermost_of_user(raw, space)
            parent = space.stacks.callers.get(chain[16:])
            if parent is None:
                parent = self._cut_off(chain, space)
        else:
            user = space.stacks.whole.get(chain[at:]) if at > 0 else NO_PARENT
            if user is None:
                return None
            parent = self._above.get((user, chain[16:at] if at > 0 else chain[16:]))
            raw = chain[8:16]
            frame = self.names.kernel.innermost.get(raw)
            if frame is None:
                frame = self.names.innermost_of_kernel(raw)
        if parent is None or frame is None:
            return None
        number = self.interned.child(parent, frame)
        return self.interned.stack((frame,), parent) if number is None else number

    def _cut_off(self, chain: bytes, space: AddressSpace) -> int | None:
        """The stack below an innermost frame whose caller is no code, as in most samples of programs without frame pointers."""
        if not space.is_complete or len(chain) < 24:
            return None
        caller = int.from_bytes(chain[16:24], "little") - 1
        return self.interned.stack([self.names.unknown]) if space.find(caller) is None else None

    def bound(self, spaces: Iterable[AddressSpace]) -> None:
        """Empty what has outgrown its bound; call it when no chain waits for its number."""
        spaces = list(spaces)
        too_many = len(self._above) + sum(len(space.stacks) for space in spaces) > _MOST_CHAINS
        if self.names.bound(spaces) or too_many:
            self._forget_stacks(spaces)

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

    def _assemble(self, chain: bytes, pid: int, space: AddressSpace, wanted: Wanted) -> int | None:
        """Number the chain frame by frame; None if some of its names have to be asked for, which is noted in `wanted`."""
        kernel, user = split_chain(chain)
        below: list[int] = []
        missing = False
        known = space.names.by_address.get
        for address in user:
            frame = known(address)
            if frame is None:
                frame = self.names.of_user(pid, space, address, wanted)
                if frame is not None and frame != NOT_CODE:
                    space.names.by_address[address] = frame
            if frame == NOT_CODE:  # what lies further out was found by following it, and is no better
                below.append(self.names.unknown)
                break
            missing = missing or frame is None
            below.append(frame or 0)
        above: list[int] = []
        known = self.names.kernel.by_address.get
        for address in kernel:
            frame = known(address)
            if frame is None:
                frame = self.names.of_kernel(address, wanted)
            missing = missing or frame is None
            above.append(frame or 0)
        return None if missing else self._remember(chain, space, above[::-1], below[::-1], len(user))

    def _remember(self, chain: bytes, space: AddressSpace, above: list[int], below: list[int], user: int) -> int:
        """Keep the chain's parts under their bytes. One of an unusual form, or cut short, is assembled each time it comes."""
        stack, at = self.interned.stack, chain.find(_USER_MARK)
        if not _is_plain(chain, at, len(above), user):
            return stack([*below, *above])
        if len(below) != user or (below and below[0] == self.names.unknown):
            if at == 0 and len(below) > 1:
                space.names.innermost[chain[8:16]] = below[-1]
            return stack([*below, *above])
        if at == 0:
            parent = space.stacks.callers[chain[16:]] = stack(below[:-1])
            frame = space.names.innermost[chain[8:16]] = below[-1]
        else:
            base = NO_PARENT
            if at > 0:
                base = space.stacks.whole[chain[at:]] = stack(below)
            parent = self._above[base, chain[16:at] if at > 0 else chain[16:]] = stack(above[:-1], base)
            frame = self.names.kernel.innermost[chain[8:16]] = above[-1]
        return stack([frame], parent)

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

    def _forget_stacks(self, spaces: list[AddressSpace]) -> None:
        self._above.clear()
        for space in spaces:
            space.stacks.clear()


def _is_plain(chain: bytes, user_mark_at: int, kernel: int, user: int) -> bool:
    """A kernel marker and its addresses, a user marker and its addresses, or one of the two; no other marker, no empty part."""
    expected_at = 8 * (1 + kernel) if kernel and user else 0 if user else -1
    parts = (kernel > 0) + (user > 0)
    return user_mark_at == expected_at and parts > 0 and len(chain) == 8 * (parts + kernel + user)
