"""Call trees drawn as text, and a real Chromium that is driven over a pipe, where one is
installed.
"""

import base64
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from necroscope.model.frame import Frame
from necroscope.stacks.differential import DifferentialTree, compare
from necroscope.stacks.flame_tree import FlameTree
from necroscope.views.flame.heading import Heading, HeadingWindow

START_NS = 1_790_000_000_000_000_000
HOSTILE = [
    "<script>document.title='pwned'</script>",
    "</script><script>document.title='pwned'</script>",
    "</title></text><image href='x' onerror='document.title=1'/>",
    "semi;colon",
    "quote\"and'quote",
    "new\nline",
    "]]><script>document.title='pwned'</script>",
    "<!--<script>",
    "</script x='",
    "<!-- <script ",
    "&amp;&lt;",
    "bell\x07",
    "right\u202eto left",
]


def frame_of(name: str) -> Frame:
    """`name` is user, `name'` kernel, `name*` jitted, `(name)` a group."""
    kinds = {"'": "kernel", "*": "jit"}
    if name.startswith("("):
        return Frame(name[1:-1], "", "group", None, None)
    kind = kinds.get(name[-1], "user")
    return Frame(
        name.rstrip("'*") if kind != "user" else name,
        "[kernel]" if kind == "kernel" else "/bin/app",
        kind,
        None,
        None,
    )


def tree_of(paths: list[tuple[list[Frame], int]]) -> FlameTree:
    frames: dict[Frame, int] = {}
    nodes: dict[tuple[int, int], int] = {}
    own: list[int] = []
    for path, weight in paths:
        node = -1
        for frame in path:
            node = nodes.setdefault((node, frames.setdefault(frame, len(frames))), len(nodes))
            own += [0] * (len(nodes) - len(own))
        own[node] += weight
    parents = [parent for parent, _ in nodes]
    total = list(own)
    for node in range(len(parents) - 1, -1, -1):
        if parents[node] >= 0:
            total[parents[node]] += total[node]
    numbers = (np.array(parents, np.int32), np.array([frame for _, frame in nodes], np.int32))
    weights = (np.array(own, np.int64), np.array(total, np.int64))
    return FlameTree(
        *numbers,
        *weights,
        list(frames),
        START_NS,
        START_NS + 5 * 10**9,
        sum(own),
        ["2 s: torn"],
        5 * 10**9,
    )


def draw_tree(text: str) -> FlameTree:
    """A path a line: `main>work>do_syscall_64' 12`."""
    lines = [line.strip().rsplit(" ", 1) for line in text.splitlines() if line.strip()]
    return tree_of(
        [([frame_of(name) for name in path.split(">")], int(weight)) for path, weight in lines]
    )


@pytest.fixture
def tree() -> FlameTree:
    return draw_tree("""
        (app)>main>work>do_syscall_64'>mem_cgroup_iter' 60
        (app)>main>work 20
        (app)>main>eval* 15
        (nginx)>main>epoll_wait' 5
    """)


@pytest.fixture
def differential(tree: FlameTree) -> DifferentialTree:
    baseline = draw_tree("""
        (app)>main>work>do_syscall_64' 10
        (app)>main>work 60
        (app)>main>eval* 15
        (app)>main>old_code 10
        (nginx)>main>epoll_wait' 5
    """)
    return compare(tree, baseline)


@pytest.fixture
def heading(tree: FlameTree) -> Heading:
    window = HeadingWindow(tree.from_ns, tree.to_ns, tree.samples)
    return Heading(
        "Flame graph", "node-7", window, "core 7", ("comm app",), left_out=tuple(tree.left_out)
    )


@pytest.fixture
def hostile_tree() -> FlameTree:
    return tree_of(
        [
            (
                [
                    Frame(text, text, HOSTILE[0] if text == HOSTILE[1] else "user", None, None)
                    for text in HOSTILE
                ],
                3,
            )
        ]
    )


@pytest.fixture
def hostile_heading(heading: Heading) -> Heading:
    return Heading(
        HOSTILE[0], HOSTILE[1], heading.window, HOSTILE[2], (HOSTILE[5],), left_out=(HOSTILE[6],)
    )


class Browser:
    """Chromium by its DevTools protocol over descriptors 3 and 4 (--remote-debugging-pipe):
    messages end in a zero byte.
    """

    def __init__(self, profile: Path) -> None:
        theirs_in, self._out = os.pipe()
        self._in, theirs_out = os.pipe()
        switches = [
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--remote-debugging-pipe",
            f"--user-data-dir={profile}",
        ]

        def number_pipes() -> None:
            # By way of numbers that neither pipe can have.
            for number, pipe in ((203, theirs_in), (204, theirs_out)):
                os.dup2(pipe, number)
            for number in (3, 4):
                os.dup2(number + 200, number)

        self._process = subprocess.Popen(
            ["chromium", *switches, "--window-size=1200,700"],
            pass_fds=(3, 4),
            preexec_fn=number_pipes,
            stderr=subprocess.DEVNULL,
        )
        os.close(theirs_in)
        os.close(theirs_out)
        self._number = 0
        self._rest = b""
        self._session: dict[str, str] = {}
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self._session = {
            "sessionId": self.ask("Target.attachToTarget", targetId=target, flatten=True)[
                "sessionId"
            ]
        }
        self.ask("Page.enable")

    def _read(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            received = os.read(self._in, 1 << 20)
            assert received, "Chromium has gone"
            self._rest += received
        message, self._rest = self._rest.split(b"\0", 1)
        found: dict[str, Any] = json.loads(message)
        return found

    def ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters} | self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while (answer := self._read()).get("id") != self._number:
            continue
        assert "error" not in answer, answer
        result: dict[str, Any] = answer["result"]
        return result

    def open(self, file: Path, fragment: str = "") -> None:
        self.ask("Page.navigate", url="about:blank")
        self.ask("Page.navigate", url=f"{file.as_uri()}{fragment}")
        while self.evaluate("document.readyState + location.protocol") != "completefile:":
            continue

    def evaluate(self, expression: str) -> Any:
        answer = self.ask("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def status(self) -> str:
        return str(self.evaluate("document.getElementById('status').textContent"))

    def click(self, x: float, y: float) -> None:
        for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
            self.ask("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def move(self, x: float, y: float) -> None:
        self.ask("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def press(self, *keys: str) -> None:
        for key in keys:
            text = {"text": key} if len(key) == 1 else {}
            self.ask("Input.dispatchKeyEvent", type="keyDown", key=key, **text)
            self.ask("Input.dispatchKeyEvent", type="keyUp", key=key)

    def picture(self) -> bytes:
        return base64.b64decode(self.ask("Page.captureScreenshot")["data"])

    def close(self) -> None:
        self._session = {}
        self.ask("Browser.close")
        self._process.wait(10)
        os.close(self._in)
        os.close(self._out)


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    if not shutil.which("chromium"):
        pytest.skip("chromium is not installed: pages cannot be opened for real")
    browser = Browser(tmp_path_factory.mktemp("chromium"))
    yield browser
    browser.close()


@pytest.fixture
def many_narrow() -> FlameTree:
    """50,000 frames of one sample each under one that has most."""
    paths = [([frame_of("main"), frame_of(f"f{number}")], 1) for number in range(50_000)]
    return tree_of([*paths, ([frame_of("main")], 10_000_000)])


@pytest.fixture
def deep() -> FlameTree:
    return tree_of([([frame_of(f"recurse{level % 7}") for level in range(10_000)], 5)])
