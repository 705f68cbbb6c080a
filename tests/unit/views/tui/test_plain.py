"""The screen without a terminal."""

import json
from collections.abc import Callable
from typing import Any

from necroscope.views.tui.look import Look
from necroscope.views.tui.plain import render_plain, screen_to_json
from necroscope.views.tui.top_model import build

SNAPSHOT = """\
 necroscope node-7 live 10:14:20 UTC                                                               97 Hz, 0 lost, 0.4 % CPU
 all cores  Sys 49%  Irq 0%  softirQ 0%  sTeal 0%  user 6%  nice 0%  wait 0%  .idle 45%
 zombie memcgs 68,680 +120/min   softirq delay 1.24 s+ net_rx cpu 1   pressure cpu 12% memory 0% io –
 ! interrupts: /proc/interrupts cannot be read
 CPU▾ BUSY  MODES                DELAY             ON IT                         CGROUP            IN FUNCTION
    0  10%  uu..................   84 µs timer     python3 4121             100% …od9f2/ray-worker [.] _PyEval_EvalFrameDef…
    1 100%  SSSSSSSSSSSSSSSSSSSS 1.24 s+ net_rx    kubelet 1872              96% …/kubelet.service [k] memcg_page_state
 EVENTS
 10:14:17  nic_reset  cpu 1 eth0  ena 0000:00:05.0 eth0: Device reset completed successfully
 10:14:00  gap        samples     rings were full (312 lost) until 10:14:01
"""


def test_plain_text_is_the_same_screen(node_of: Callable[..., Any]) -> None:
    node = node_of(2)
    node.notice_texts = ["interrupts: /proc/interrupts cannot be read"]
    assert render_plain(build(node, Look()), "node-7", width=124) == SNAPSHOT


def test_plain_text_has_a_row_for_every_core_and_every_notice(node_of: Callable[..., Any]) -> None:
    node = node_of(128, seconds=3)
    node.notice_texts = ["a", "b", "c", "d", "e"]
    text = render_plain(build(node, Look()))
    assert {int(line[:5]) for line in text.splitlines() if line[:5].strip().isdecimal()} == set(
        range(128)
    )
    assert [line for line in text.splitlines() if line.startswith(" ! ")] == [
        " ! a",
        " ! b",
        " ! c",
        " ! d",
        " ! e",
    ]


def test_plain_text_holds_no_control_character_whatever_names_say(node: Any) -> None:
    node.core(1, 0, user=1.0)
    node.sample(1, 0, "\x1b[2J\r", cgroup="/\x9b", user="\x07")
    node.event(1, "nic_reset", "\x1b]52;c;x\x07")
    text = render_plain(build(node, Look()))
    assert all(part.isprintable() for part in text.split("\n"))


def test_json_has_null_where_nothing_was_measured(node: Any) -> None:
    node.core(1, 0, user=0.25)
    node.core(0, 1, user=0.25)
    found = json.loads(json.dumps(screen_to_json(build(node, Look()))))
    assert found["time"] == "2026-04-15T10:13:21.000Z"
    assert (found["zombies"], found["pressure"]["io"]) == (None, None)
    assert [core["busy"] for core in found["cores"]] == [0.25, None]
    assert found["cores"][0]["softirq_delay"] is None
    assert found["cores"][1]["missing"] == "no row was recorded"


def test_json_names_the_task_on_a_core(node_of: Callable[..., Any]) -> None:
    core = screen_to_json(build(node_of(2), Look()))["cores"][1]
    assert core["on"][0] | {"share": 0} == {
        "comm": "kubelet",
        "pid": 1872,
        "cgroup": "/system.slice/kubelet.service",
        "share": 0,
        "function": "memcg_page_state",
        "in_kernel": True,
    }
    assert core["softirq_delay"] == {
        "worst_ns": 1_240_000_000,
        "vector": "net_rx",
        "is_pending": True,
    }


def test_before_the_first_row_both_forms_exist(node: Any) -> None:
    screen = build(node, Look())
    assert "waiting for the first tick" in render_plain(screen)
    assert screen_to_json(screen)["time"] is None
