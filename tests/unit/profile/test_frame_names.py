"""Rows of `frames` from what the core knows: readable names beside their modules, and what has no
name.
"""

import struct
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from necroscope.model.frame import UNKNOWN_USER, Frame
from necroscope.profile.core import CoreFrame, CoreModule, FunctionKind
from necroscope.profile.frame_names import BOUNDED, GUEST, FrameNames
from necroscope.symbols.image import NAME_LIMIT_BYTES

KERNEL, USER, JIT = FunctionKind.KERNEL, FunctionKind.USER, FunctionKind.JIT
APP = 3


class FakeCore:
    """Frames in the order of their numbers, modules by number, stacks as (parent, frame)."""

    def __init__(self, *frames: CoreFrame) -> None:
        self.known = frames
        self.modules = {APP: CoreModule(b"/usr/bin/app", 8, 1, 77, None)}
        self.modules_asked: list[int] = []
        self.nodes: list[tuple[int, int]] = []

    @property
    def view(self) -> Any:
        return SimpleNamespace(frame_count=len(self.known))

    def frames(self, first: int, count: int | None = None) -> list[CoreFrame]:
        return list(self.known[first:] if count is None else self.known[first : first + count])

    def module(self, number: int) -> CoreModule:
        self.modules_asked.append(number)
        return self.modules[number]

    def stacks(self) -> tuple[bytes, bytes]:
        parents, frames = zip(*self.nodes, strict=True)
        return struct.pack(f"<{len(parents)}i", *parents), struct.pack(f"<{len(frames)}i", *frames)


class FakeDemangler:
    def __init__(self) -> None:
        self.asked: list[list[str]] = []

    def __call__(self, symbols: Sequence[str]) -> list[str]:
        self.asked.append(list(symbols))
        return [f"readable {symbol}" for symbol in symbols]


@pytest.fixture
def demangle() -> FakeDemangler:
    return FakeDemangler()


def names_of(demangle: FakeDemangler, *frames: CoreFrame) -> FrameNames:
    return FrameNames(FakeCore(*frames), demangle)  # type: ignore[arg-type]


def frame_of(demangle: FakeDemangler, frame: CoreFrame) -> Frame:
    (found,) = names_of(demangle, frame).frames([0])
    return found


def test_a_function_of_the_kernel_is_named_with_its_module(demangle: FakeDemangler) -> None:
    assert frame_of(demangle, CoreFrame(KERNEL, 0, b"schedule", None)) == Frame(
        "schedule", "[kernel]", "kernel", None, None
    )
    loaded = CoreFrame(KERNEL, 0, b"nf_hook\t[nf_tables]", None)
    assert frame_of(demangle, loaded) == Frame("nf_hook", "[nf_tables]", "kernel", None, None)


def test_what_the_kernel_cannot_name_is_kept_by_its_address_as_signed_64_bits(
    demangle: FakeDemangler,
) -> None:
    frame = frame_of(demangle, CoreFrame(KERNEL, 0, b"", 0xFFFFFFFF81000005))
    assert frame == Frame(None, "[kernel]", "kernel", 0xFFFFFFFF81000005 - (1 << 64), None)
    struct.pack("<q", frame.offset)


def test_a_function_of_a_file_is_named_with_its_path_and_build_id(demangle: FakeDemangler) -> None:
    names = names_of(
        demangle, CoreFrame(USER, APP, b"main", None), CoreFrame(USER, APP, b"", 0x1234)
    )
    names.build_ids[APP] = "b1d"
    assert names.frames([0, 1]) == [
        Frame("main", "/usr/bin/app", "user", None, "b1d"),
        Frame(None, "/usr/bin/app", "user", 0x1234, "b1d"),
    ]


def test_an_offset_that_no_file_has_still_fits_its_column(demangle: FakeDemangler) -> None:
    frame = frame_of(demangle, CoreFrame(USER, APP, b"", (1 << 64) - 16))
    assert frame.offset == -16


def test_a_place_that_lost_its_offset_is_its_module_alone(demangle: FakeDemangler) -> None:
    assert frame_of(demangle, CoreFrame(USER, APP, b"", None)) == Frame(
        None, "/usr/bin/app", "user", None, None
    )


@pytest.mark.parametrize("from_answer", [None, "a15"])
@pytest.mark.parametrize("from_record", [None, "7ec"])
def test_a_build_id_is_that_of_the_answer_or_else_of_the_record(
    from_answer: str | None, from_record: str | None, demangle: FakeDemangler
) -> None:
    core = FakeCore(CoreFrame(USER, APP, b"main", None))
    core.modules[APP] = core.modules[APP]._replace(build_id=from_record)
    names = FrameNames(core, demangle)  # type: ignore[arg-type]
    names.build_ids[APP] = from_answer
    assert names.frames([0])[0].build_id == (from_answer or from_record)
    assert names.build_ids[APP] == (from_answer or from_record)


def test_code_made_at_run_time_is_named_by_its_maker(demangle: FakeDemangler) -> None:
    frame = frame_of(demangle, CoreFrame(JIT, 1, "py::größe /srv/a.py".encode(), None))
    assert frame == Frame("py::größe /srv/a.py", "[jit]", "jit", None, None)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (FunctionKind.UNKNOWN, UNKNOWN_USER),
        (FunctionKind.GUEST, GUEST),
        (FunctionKind.BOUNDED, BOUNDED),
    ],
)
def test_what_is_no_function_is_one_frame(
    kind: FunctionKind, expected: Frame, demangle: FakeDemangler
) -> None:
    assert frame_of(demangle, CoreFrame(kind, 0, b"", None)) == expected


def test_mangled_names_are_demangled_by_one_question_and_each_once(demangle: FakeDemangler) -> None:
    names = names_of(
        demangle,
        CoreFrame(USER, APP, b"_ZN3foo3barEv", None),
        CoreFrame(USER, APP, b"main", None),
        CoreFrame(KERNEL, 0, b"_RNvCs1_6binder4poll\t[rust_binder]", None),
        CoreFrame(USER, 4, b"_ZN3foo3barEv", None),
        CoreFrame(USER, APP, b"", 7),
    )
    names._core.modules[4] = CoreModule(b"/lib/b.so", 8, 1, 78, None)  # type: ignore[attr-defined]
    assert [(frame.function, frame.module) for frame in names.frames(range(5))] == [
        ("readable _ZN3foo3barEv", "/usr/bin/app"),
        ("main", "/usr/bin/app"),
        ("readable _RNvCs1_6binder4poll", "[rust_binder]"),
        ("readable _ZN3foo3barEv", "/lib/b.so"),
        (None, "/usr/bin/app"),
    ]
    assert demangle.asked == [["_RNvCs1_6binder4poll", "_ZN3foo3barEv"]]


def test_nobody_is_asked_where_no_name_is_mangled(demangle: FakeDemangler) -> None:
    names_of(demangle, CoreFrame(USER, APP, b"main", None)).frames([0])
    assert demangle.asked == []


def test_hostile_names_and_paths_are_cleaned_and_bounded(demangle: FakeDemangler) -> None:
    core = FakeCore(
        CoreFrame(USER, APP, b"a\x1b[2Jb\xff", None),
        CoreFrame(USER, APP, b"n" * NAME_LIMIT_BYTES, None),
        CoreFrame(KERNEL, 0, b"f\t[m\x07]", None),
    )
    core.modules[APP] = CoreModule(b"/srv/\n\xff" + b"d" * 4000, 8, 1, 77, None)
    user, long, kernel = FrameNames(core, demangle).frames(range(3))  # type: ignore[arg-type]
    assert (user.function, user.module[:13], len(user.module)) == (
        "a\\x1b[2Jb\\xff",
        "/srv/\\x0a\\xff",
        300,
    )
    assert long.function == "n" * 199 + "…"
    assert kernel.module == "[m\\x07]"


def test_a_mangled_name_that_was_cut_is_marked_so_that_it_names_no_other_function(
    demangle: FakeDemangler,
) -> None:
    frame_of(demangle, CoreFrame(USER, APP, (b"_Z1f" + b"i" * 2000)[:NAME_LIMIT_BYTES], None))
    ((asked,),) = demangle.asked
    assert asked.endswith("i…")


def test_rows_are_numbered_from_the_first_that_is_asked_for(demangle: FakeDemangler) -> None:
    names = names_of(
        demangle, *(CoreFrame(KERNEL, 0, b"f%d" % number, None) for number in range(4))
    )
    assert names.rows(2) == [
        (2, "f2", "[kernel]", "kernel", None, None),
        (3, "f3", "[kernel]", "kernel", None, None),
    ]
    assert names.rows(4) == []


def test_a_stack_is_given_from_its_innermost_frame(demangle: FakeDemangler) -> None:
    core = FakeCore(
        *(CoreFrame(KERNEL, 0, name, None) for name in (b"main", b"read", b"_ZN1fEv", b"other"))
    )
    core.nodes = [(-1, 0), (0, 3), (0, 1), (2, 2)]
    names = FrameNames(core, demangle)  # type: ignore[arg-type]
    assert [frame.function for frame in names.stack(3)] == ["readable _ZN1fEv", "read", "main"]
    assert names.stack(-1) == names.stack(4) == []


def test_a_module_is_asked_for_once_until_numbers_are_others(demangle: FakeDemangler) -> None:
    core = FakeCore(CoreFrame(USER, APP, b"main", None))
    core.modules[APP] = core.modules[APP]._replace(build_id="01d")
    names = FrameNames(core, demangle)  # type: ignore[arg-type]
    assert names.frames([0, 0]) == [Frame("main", "/usr/bin/app", "user", None, "01d")] * 2
    assert core.modules_asked == [APP]
    core.modules[APP] = CoreModule(b"/usr/bin/other", 8, 1, 78, None)
    names.forget()
    assert names.frames([0]) == [Frame("main", "/usr/bin/other", "user", None, None)]
