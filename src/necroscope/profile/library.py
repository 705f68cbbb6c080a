"""The native core as Python sees it: the library next to this file, its structures and its
functions (core/profile.h).

Ours, and in C behind ctypes, because each sample is a few hundred memory accesses and nothing else:
as Python objects they cost seven times as much, fetched through caches that the load keeps
emptying. There is no Python.h in it, so one library serves every version of Python. `PROFILE_ABI`
of core/profile.h and `native.ABI` change together.
"""

import ctypes
from ctypes import CDLL, POINTER, Structure, c_char_p, c_int, c_int32, c_uint32, c_uint64, c_void_p
from functools import cache
from pathlib import Path
from typing import Final

from necroscope import native
from necroscope.native import LIBRARY


class NativeEvent(Structure):
    """struct event: how the samples of one perf event look."""

    _fields_ = (
        ("sample_type", c_uint64),
        ("read_format", c_uint64),
        ("branch_sample_type", c_uint64),
        ("user_registers", c_uint64),
        ("interrupt_registers", c_uint64),
        ("ip_register", c_uint32),
        ("is_passed_on", c_uint32),
    )


class NativeLimits(Structure):
    """struct limits. `asks`: there is a /proc to ask about processes."""

    _fields_ = (
        ("limit_bytes", c_uint64),
        ("tenant_limit_bytes", c_uint64),
        ("tenant_nodes", c_uint32),
        ("tenant_unnamed", c_uint32),
        ("most_nodes", c_uint32),
        ("asks", c_uint32),
        ("has_time", c_uint32),
        ("has_trailer", c_uint32),
    )


class ModuleKey(Structure):
    """struct module: what tells one file from another; the core fills in the rest."""

    _fields_ = (
        ("kind", c_uint32),
        ("tenant", c_uint32),
        ("major", c_uint32),
        ("minor", c_uint32),
        ("inode", c_uint64),
        ("build_id", ctypes.c_uint8 * 20),
        ("build_id_length", c_uint32),
        ("path_length", c_uint32),
        ("path", c_uint64),
        ("number", c_uint32),
        ("no_offset", c_uint32),
    )


class ModuleView(Structure):
    _fields_ = (
        ("kind", c_uint32),
        ("major", c_uint32),
        ("minor", c_uint32),
        ("build_id_length", c_uint32),
        ("inode", c_uint64),
        ("path", c_void_p),
        ("build_id", c_void_p),
        ("path_length", c_uint64),
    )


class NativeRing(Structure):
    _fields_ = (
        ("base", c_void_p),
        ("data_bytes", c_uint64),
        ("page_bytes", c_uint64),
        ("cpu", c_int32),
        ("reserved", c_uint32),
    )


class Rows(Structure):
    _fields_ = (
        *(
            (name, c_void_p)
            for name in ("time", "cpu", "pid", "tid", "name", "cgroup", "stack", "event")
        ),
        *((name, c_void_p) for name in ("cgroup_id", "argument", "has_argument", "has_cgroup")),
        *((name, c_uint32) for name in ("count", "capacity", "without_cgroup")),
    )


class NativeView(Structure):
    _fields_ = (
        ("rows", POINTER(Rows)),
        *(
            (name, c_void_p)
            for name in ("names", "cgroups", "parents", "frames", "questions", "passed_on")
        ),
        *(
            (name, c_uint64)
            for name in (
                "name_count",
                "cgroup_count",
                "node_count",
                "frame_count",
                "question_count",
            )
        ),
        *((name, c_uint64) for name in ("passed_on_bytes", "pending_count")),
        *((name, c_uint64) for name in ("latest_ns", "queued_bytes", "used_bytes", "limit_bytes")),
        *(
            (name, c_uint64)
            for name in ("samples", "idle", "malformed", "refused", "cut", "rounds", "bounded")
        ),
        *((name, c_uint64) for name in ("processes", "functions")),
    )


# struct question: kind, pid, tid, parent, module, padding; where, first, last.
QUESTION: Final = "<IiiiIIQQQ"

_SIGNATURES: Final = {
    "profile_abi": (c_uint32, ()),
    "profile_new": (c_void_p, (POINTER(NativeLimits), c_char_p, c_uint32)),
    "profile_free": (None, (c_void_p,)),
    "profile_add_event": (c_int, (c_void_p, POINTER(NativeEvent))),
    "profile_add_id": (c_int, (c_void_p, c_uint64, c_uint32)),
    "profile_feed": (c_uint64, (c_void_p, c_char_p, c_uint64, c_int32)),
    "profile_drain": (None, (c_void_p, c_void_p, c_uint32)),
    "profile_window": (None, (c_void_p, c_uint64, c_uint64)),
    "profile_replay": (None, (c_void_p, c_uint64, ctypes.c_int64)),
    "profile_resume": (c_uint32, (c_void_p, c_uint32)),
    "profile_finish": (None, (c_void_p,)),
    "profile_view": (None, (c_void_p, POINTER(NativeView))),
    "profile_module": (c_int, (c_void_p, c_uint32, POINTER(ModuleView))),
    "profile_map": (
        None,
        (c_void_p, c_int32, c_uint64, c_uint64, c_uint64, POINTER(ModuleKey), c_char_p, c_uint64),
    ),
    "profile_begin_mappings": (None, (c_void_p, c_int32)),
    "profile_end_mappings": (None, (c_void_p, c_int32, c_uint32)),
    "profile_set_name": (None, (c_void_p, c_int32, c_char_p, c_uint64)),
    "profile_set_cgroup": (None, (c_void_p, c_int32, c_int32)),
    "profile_learn_block": (
        c_int,
        (c_void_p, c_uint32, c_uint64, c_uint32, c_char_p, c_char_p, c_char_p, c_uint64),
    ),
    "profile_learn_place": (None, (c_void_p, c_uint32, c_uint64, c_char_p, c_uint64)),
    "profile_forget_blocks": (None, (c_void_p, c_uint32, c_uint32, c_uint64, c_uint64)),
    "profile_forget_block": (None, (c_void_p, c_uint32, c_uint64)),
    "profile_forget_cgroups": (None, (c_void_p,)),
    "profile_forget_tasks": (None, (c_void_p,)),
    "profile_start_segment": (c_int, (c_void_p, c_uint32)),
    "kallsyms_new": (c_void_p, ()),
    "kallsyms_free": (None, (c_void_p,)),
    "kallsyms_read": (c_int, (c_void_p, c_int32)),
    "kallsyms_finish": (ctypes.c_int64, (c_void_p,)),
    "kallsyms_block": (c_uint32, (c_void_p, c_uint64, c_void_p, c_void_p, c_void_p, c_uint32)),
    "kallsyms_find": (c_uint64, (c_void_p, c_char_p, c_void_p, c_void_p, c_void_p)),
    "profile_take_bounded": (c_uint32, (c_void_p, c_void_p, c_void_p, c_uint32)),
    # For captures of other tools.
    "profile_scan": (c_uint64, (c_void_p, c_char_p, c_uint64, c_void_p)),
    "profile_skip": (c_uint64, (c_char_p, c_uint64)),
    "profile_earliest": (c_uint64, (c_void_p,)),
    "profile_leave_out": (None, (c_void_p, c_uint32)),
    "profile_event_counts": (c_int, (c_void_p, c_uint32, c_void_p)),
    "profile_turn_span": (c_uint64, (c_void_p, c_void_p)),
    "profile_start_capture": (None, (c_void_p, c_uint32, c_uint32)),
    "profile_limit_turn": (None, (c_void_p, c_uint32)),
    "profile_safe_until": (c_uint64, (c_void_p, c_uint32)),
    "profile_count_marks": (
        c_int,
        (c_void_p, c_char_p, c_uint32, c_char_p, c_char_p, c_uint32, c_void_p, c_void_p),
    ),
    "profile_frames": (c_uint32, (c_void_p, c_uint32, c_uint32, c_void_p)),
    "profile_text": (c_void_p, (c_void_p, POINTER(c_uint64))),
    "profile_learn_symbols": (
        None,
        (
            *(c_void_p, c_uint32, c_char_p, c_uint32),
            *(c_void_p, c_void_p, c_uint32, c_char_p, c_uint32, c_int32),
        ),
    ),
    "profile_intern_stacks": (None, (c_void_p, c_char_p, c_char_p, c_uint32, c_void_p)),
}


@cache
def load(path: Path = LIBRARY) -> CDLL:
    """The library; SourceUnavailable says why there is none. What needs no stacks works without
    it.
    """
    return native.load(_SIGNATURES, path)
