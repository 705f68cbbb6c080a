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
from necroscope.sources.perf.frame_names import ASKED, MOST_NAMES, FrameNames, Lookup, Wanted
from necroscope.sources.perf.interned import NO_PARENT, Interned

_USER_MARK: Final = struct.pack("<Q", CONTEXT_USER)
_KERNEL_MARK: Final = struct.pack("<Q", CONTEXT_KERNEL)
# About 300 bytes each.
_MOST_CHAINS: Final = 16_000
_MOST_WHOLE: Final = 16_000
_MOST_QUESTIONS: Final = 4
# To look up an innermost address and three callers one by one costs no more than to look them up together.
_FEW_BYTES: Final = 32
_SHORT_USER_CHAINS: Final = {8 + 8 * count: struct.Struct(f"<8x{count}Q").unpack for count in range(1, 1 + _FEW_BYTES // 8)}
# One for each length of chain, of which the kernel allows 127 addresses.
_LAYOUTS: Final[dict[int, struct.Struct]] = {}


def split_chain(raw: bytes) -> tuple[list[int], list[int]]:
    """Kernel and user addresses, innermost first. All but a part's first are return addresses: one less lies in the call.

    What follows the user marker was read from the program's own stack: nothing in there is a marker, whatever it looks like.
    """
    addresses = _words(raw)
    mark = addresses.index(CONTEXT_USER) if CONTEXT_USER in addresses else len(addresses)
    return _calls_between_marks(addresses[:mark]), _calls(addresses[mark + 1 :])


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
        self._short: dict[tuple[int, ...], int] = {}
        self._chains = 0
        self._whole_chains = 0
        self._wanted = Wanted()

    @property
    def idle_addresses(self) -> set[bytes]:
        """Innermost addresses, as the ring has them, of a core with nothing to do; the same set for ever."""
        return self.names.idle_addresses

    def number(self, chain: bytes, pid: int, space: AddressSpace) -> int | None:
        """The stack of this chain in the segment, from then on in `space.stacks`, where the caller has looked before.

        None if names have to be asked for, which `resolve` does for all together.
        """
        number = self._short_user_stack(chain, space)
        if number is None:
            number = self._number(chain, pid, space, self._wanted)
        if number is not None:
            space.stacks[chain] = number
            self._whole_chains += 1
        return number

    def _short_user_stack(self, chain: bytes, space: AddressSpace) -> int | None:
        """The commonest chain by far, a few user addresses whose frames are known, without a further call."""
        unpack = _SHORT_USER_CHAINS.get(len(chain))
        if unpack is not None and space.located is not None and chain.startswith(_USER_MARK):
            starts, located, moved = space.starts, space.located, 0
            frames: list[int] = []
            for address in unpack(chain):
                end, shift, known = located[bisect_right(starts, address - moved) - 1]
                if address - moved >= end:
                    frames.append(self.names.unknown)
                    break
                frames.append(known.get(address - moved - shift, ASKED))
                moved = 1
            return self._short.get(tuple(frames))
        return None

    def resolve(self, chains: Sequence[tuple[bytes, int, AddressSpace]]) -> list[int]:
        """Numbers of the chains that `number` had no answer for, in their order. What nobody could name is known to be unknown.

        Functions are asked for first, then the names of those that are mangled. A mapping that came later in the drain may lie
        over the one that was asked about: then it takes another question.
        """
        numbers: list[int | None] = [None] * len(chains)
        for _ in range(_MOST_QUESTIONS):
            self.names.learn(self._wanted)
            self._wanted = Wanted()
            numbers = [self._number(*chain, self._wanted) for chain in chains]
            if None not in numbers:
                break
        return [NO_PARENT if number is None else number for number in numbers]

    def bound(self, spaces: Callable[[], Iterable[AddressSpace]]) -> None:
        """Empty what has outgrown its bound; call it when no chain waits for its number."""
        if self.names.bound(spaces):
            self._forget_stacks(())
        elif self._chains > _MOST_CHAINS:
            self._forget_stacks(spaces())
        elif self._whole_chains > _MOST_WHOLE:
            # Most of them never come again; what they were put together from does.
            self._whole_chains = 0
            for space in spaces():
                space.stacks = {}

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

    def note_kernel_change(self, spaces: Iterable[AddressSpace]) -> None:
        self.names.note_kernel_change()
        self._forget_stacks(spaces)

    def _number(self, chain: bytes, pid: int, space: AddressSpace, wanted: Wanted) -> int | None:
        at = chain.find(_USER_MARK)
        if at == 0:
            return self._user_stack(chain[8:], pid, space, wanted)
        if chain[:8] != _KERNEL_MARK or (at > 0 and at & 7):
            return self._assemble(chain, pid, space, wanted)
        base = NO_PARENT if at < 0 else self._user_stack(chain[at + 8 :], pid, space, wanted)
        raw = chain[8:] if at < 0 else chain[8:at]
        if base is not None:
            parent = self._above.get((base, raw[8:]))
            innermost = self.names.kernel.get(int.from_bytes(raw[:8], "little"))
            if parent is not None and innermost is not None:
                return self.interned.stack((innermost,), parent)
        addresses = _words(raw)
        if max(addresses, default=CONTEXT_MAX) >= CONTEXT_MAX:
            return self._assemble(chain, pid, space, wanted)
        frames = self._kernel_frames(_calls(addresses), wanted)
        if base is None or ASKED in frames:
            return None
        parent = self._above[base, raw[8:]] = self.interned.stack(frames[:0:-1], base)
        self._chains += 1
        return self.interned.stack(frames[:1], parent)

    def _user_stack(self, raw: bytes, pid: int, space: AddressSpace, wanted: Wanted) -> int | None:
        """The stack of user addresses, innermost first."""
        if space.located is None:
            self.names.locate(pid, space)
        if len(raw) > _FEW_BYTES:
            return self._long_user_stack(raw, pid, space, wanted)
        frames = self._user_frames(_calls(_words(raw)), pid, space, wanted)
        number = self._short.get(frames)
        if number is None and ASKED not in frames:
            number = self._short[frames] = self.interned.stack(reversed(frames))
            self._chains += 1
        return number

    def _long_user_stack(self, raw: bytes, pid: int, space: AddressSpace, wanted: Wanted) -> int | None:
        """Its callers are looked up as a whole, unless they end in garbage, which never comes again."""
        address = int.from_bytes(raw[:8], "little")
        innermost = self._user_frames([address], pid, space, wanted)
        if innermost[0] == self.names.unknown and space.find(address) is None:
            return self.interned.stack(innermost)
        parent = space.callers.get(raw[8:])
        if parent is None:
            callers = self._user_frames(_calls(_words(raw))[1:], pid, space, wanted)
            if ASKED in callers:
                return None
            parent = self.interned.stack(reversed(callers))
            if callers[-1] != self.names.unknown:
                space.callers[raw[8:]] = parent
                self._chains += 1
        return None if ASKED in innermost else self.interned.stack(innermost, parent)

    def _user_frames(self, addresses: list[int], pid: int, space: AddressSpace, wanted: Wanted) -> tuple[int, ...]:
        """Frames of addresses, ASKED for those that have to be asked for.

        They end with the first that is no code: what lies further out was found by following it.
        """
        starts, located = space.starts, space.located
        assert located is not None
        frames: list[int] = []
        for address in addresses:
            end, shift, known = located[bisect_right(starts, address) - 1]
            if address >= end:
                frames.append(self.names.unknown)
                break
            frame = known.get(address - shift, ASKED)
            frames.append(self.names.of_user(pid, space, address, wanted) if frame == ASKED else frame)
        return tuple(frames)

    def _kernel_frames(self, addresses: Sequence[int], wanted: Wanted) -> list[int]:
        known, of_kernel = self.names.kernel, self.names.of_kernel
        return [known[address] if address in known else of_kernel(address, wanted) for address in addresses]

    def _assemble(self, chain: bytes, pid: int, space: AddressSpace, wanted: Wanted) -> int | None:
        """Number a chain of unusual form; None if some of its names have to be asked for, which is noted in `wanted`."""
        kernel, user = split_chain(chain)
        if space.located is None:
            self.names.locate(pid, space)
        below = self._user_frames(user, pid, space, wanted)
        frames = [*reversed(below), *reversed(self._kernel_frames(kernel, wanted))]
        return None if ASKED in frames else self.interned.stack(frames)

    def _forget_stacks(self, spaces: Iterable[AddressSpace]) -> None:
        self._chains = self._whole_chains = 0
        self._above.clear()
        self._short.clear()
        for space in spaces:
            space.forget_stacks()
