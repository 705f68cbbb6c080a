"""The native core: a chain becomes the stack that a person would draw."""

import pytest
from tests.drawn_profile import GUEST_MARK, KERNEL_MARK, USER_MARK, DrawnProfile


def test_a_chain_through_program_library_and_kernel(profile: DrawnProfile) -> None:
    profile.sample(5, 10, "main serve libc.so:read > do_syscall_64 vfs_read", cpu=3)
    assert profile.turn() == ["5 cpu3 nginx/10: main serve read > do_syscall_64 vfs_read"]


def test_interrupt_on_idle_core_is_work_and_idle_is_dropped(profile: DrawnProfile) -> None:
    profile.sample(1, 0, "> cpu_startup_entry default_idle asm_common_interrupt net_rx_action")
    profile.sample(2, 0, "> cpu_startup_entry default_idle")
    assert profile.turn() == [
        "1 cpu0 swapper/0: > cpu_startup_entry default_idle asm_common_interrupt net_rx_action"
    ]
    assert profile.core.view.idle == 1
    profile.sample(3, 0, "> cpu_startup_entry default_idle")
    assert profile.turn() == []
    assert profile.core.view.idle == 2


def test_a_function_of_a_program_that_is_called_as_an_idle_one_is_not_idle(
    profile: DrawnProfile,
) -> None:
    profile.sample(1, 10, "main default_idle")
    profile.sample(2, 10, "main > default_idle")
    assert profile.turn() == [
        "1 cpu0 nginx/10: main default_idle",
        "2 cpu0 nginx/10: main > default_idle",
    ]


def test_a_chain_ends_where_it_leads_out_of_code(profile: DrawnProfile) -> None:
    profile.sample(1, 10, "main 0x1234 serve")
    assert profile.turn() == ["1 cpu0 nginx/10: ? serve"]


def test_nothing_behind_the_mark_of_the_user_is_a_mark(profile: DrawnProfile) -> None:
    serve, idle = profile.address("/bin/nginx", "serve"), profile.address("", "default_idle")
    profile.sample_words(1, 10, [USER_MARK, serve, KERNEL_MARK, idle])
    assert profile.turn() == ["1 cpu0 nginx/10: ? serve"]


def test_guests_and_a_chain_without_marks(profile: DrawnProfile) -> None:
    serve, vfs_read = profile.address("/bin/nginx", "serve"), profile.address("", "vfs_read")
    profile.sample_words(1, 10, [GUEST_MARK, 0x1000, 0x2000])
    profile.sample_words(2, 10, [vfs_read, serve + 1])
    profile.sample_words(3, 10, [])
    assert profile.turn() == [
        "1 cpu0 nginx/10: > [guest] [guest]",
        "2 cpu0 nginx/10: serve > vfs_read",
        "3 cpu0 nginx/10: ?",
    ]


def test_a_function_without_a_name_is_a_place_in_its_file(profile: DrawnProfile) -> None:
    profile.nameless.add("stripped")
    profile.sample(1, 10, "libc.so:stripped")
    profile.sample(2, 10, "libc.so:stripped main")
    first, second = profile.turn()
    assert first == "1 cpu0 nginx/10: libc.so+0x80"
    assert second == "2 cpu0 nginx/10: libc.so+0x80 main"


def test_equal_stacks_are_one_and_share_their_callers(profile: DrawnProfile) -> None:
    for time in range(1, 100):
        profile.sample(time, 10, "main serve" if time % 2 else "main idle")
    assert len(profile.turn()) == 99
    assert profile.core.view.node_count == 3


def test_code_made_at_run_time_is_asked_for_by_its_address(profile: DrawnProfile) -> None:
    start = 0x7000_0000
    profile.mapped[10].append(profile.mapping("//anon", start, 0x1000))
    profile.jitted = {start + 0x10: b"Handler.get"}
    profile.sample(1, 10, f"main {start + 0x10:#x}")
    profile.sample(2, 10, f"main {start + 0x20:#x}")
    assert profile.turn() == ["1 cpu0 nginx/10: main jit:Handler.get", "2 cpu0 nginx/10: main ?"]
    profile.asked.clear()
    profile.sample(3, 10, f"main {start + 0x10:#x}")
    assert profile.turn() == ["3 cpu0 nginx/10: main jit:Handler.get"]
    assert not profile.asked
    profile.maps(4, 10, "//anon", start, 0x1000)
    profile.jitted = {start + 0x10: b"Other.code"}
    profile.sample(5, 10, f"main {start + 0x10:#x}")
    assert profile.turn() == ["5 cpu0 nginx/10: main jit:Other.code"]


def test_stacks_and_frames_begin_again_with_a_segment(profile: DrawnProfile) -> None:
    profile.sample(1, 10, "main serve > vfs_read")
    profile.turn()
    profile.asked.clear()
    for most_functions in (1000, 0):
        assert profile.core.start_segment(most_functions) is False
        assert (profile.core.view.node_count, profile.core.view.frame_count) == (0, 0)
        profile.sample(2, 10, "main > vfs_read")
        assert profile.turn() == ["2 cpu0 nginx/10: main > vfs_read"]
        assert profile.core.view.frame_count == 2
    assert not profile.asked  # what was answered about files is kept


def test_what_nobody_answers_is_unknown_and_is_asked_again_once_it_is_forgotten(
    profile: DrawnProfile,
) -> None:
    profile.sample(1, 10, "main")
    profile.turn()
    profile.core.forget_blocks()
    profile.asked.clear()
    profile.sample(2, 10, "main")
    assert profile.turn() == ["2 cpu0 nginx/10: main"]
    (question,) = profile.asked
    profile.core.forget_block(question.module, question.where)
    profile.answers = False
    profile.sample(3, 10, "main")
    assert profile.turn() == ["3 cpu0 nginx/10: ?"]
    profile.core.forget_block(question.module, question.where)
    profile.answers = True
    profile.sample(4, 10, "main")
    assert profile.turn() == ["4 cpu0 nginx/10: main"]


def test_a_turn_that_ends_early_asks_for_the_rest_in_the_next(profile: DrawnProfile) -> None:
    profile.sample(1, 10, "main")
    assert profile.turn(rounds=2) == [
        "1 cpu0 nginx/10: ?"
    ]  # the cgroup and the mappings, but not the functions
    profile.sample(2, 10, "main")
    assert profile.turn() == ["2 cpu0 nginx/10: main"]


@pytest.mark.parametrize(
    ("starts", "name_ends", "names"),
    [
        (b"\0\0", b"\xff\0\0\0", b"short"),
        (b"\1\0", b"\1\0\0\0", b"a"),
        (b"\0\0\0\0", b"\1\0\0\0\2\0\0\0", b"ab"),
        (b"\0\0\1\0", b"\2\0\0\0\1\0\0\0", b"ab"),
        (b"\0\0\1\0", b"\1\0\0\0", b"ab"),
    ],
    ids=[
        "name beyond the names",
        "no function at 0",
        "two at one place",
        "names end backwards",
        "fewer names than places",
    ],
)
def test_an_answer_that_cannot_be_one_names_nothing(
    profile: DrawnProfile, starts: bytes, name_ends: bytes, names: bytes
) -> None:
    profile._block = lambda question: (starts, name_ends, names)  # type: ignore[assignment,return-value]
    profile.sample(1, 10, "main")
    assert profile.turn() == ["1 cpu0 nginx/10: nginx+0x80"]
