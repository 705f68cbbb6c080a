"""A real recorder in a process of its own, driven as a user would."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

import pytest
from tests.conftest import LEAK_MARK, SETTLE_S, Footprint
from tests.integration.private_view import silence_kernel_log

from necroscope.store.query import Store
from necroscope.views.web.export import STATIC

COMMAND = [sys.executable, "-m", "necroscope"]


class RunningRecorder:
    """`necroscope record` under way; `stop` ends it as Ctrl-C would. Rows are on the disk sooner
    than by default. It reads this machine's kernel log only if the test is about that.
    """

    silent_log: ClassVar[str]

    def __init__(
        self,
        directory: Path,
        *options: str,
        preexec: Callable[[], None] | None = None,
        reads_kernel_log: bool = False,
    ) -> None:
        self.directory = directory

        def prepare() -> None:
            if os.geteuid() == 0 and not reads_kernel_log:
                silence_kernel_log(self.silent_log)
            if preexec is not None:
                preexec()

        # A process that most tests have no use for.
        judging = [] if "--verdicts" in options else ["--verdicts", "off"]
        often = [] if "--flush" in options else ["--flush", "500ms"]
        command = [
            *COMMAND,
            "record",
            "--dir",
            str(directory),
            "--json",
            "--free-floor",
            "0",
            *often,
            *judging,
            *options,
        ]
        descriptor, path = tempfile.mkstemp(prefix="necroscope-test-")
        self._stderr = Path(path)
        try:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=descriptor,
                text=True,
                preexec_fn=prepare,
            )
        finally:
            os.close(descriptor)

    def wait_until(
        self, is_true: Callable[[], Any], seconds: float = 20, every_s: float = 0.2
    ) -> Any:
        """What `is_true` answers, as soon as it is true."""
        deadline = time.monotonic() + seconds
        while not (answer := is_true()):
            assert self.process.poll() is None, self.said()
            assert time.monotonic() < deadline, "nothing came in time"
            time.sleep(every_s)
        return answer

    def rows(self, table: str) -> list[dict[str, Any]]:
        try:
            return list(Store.open(self.directory).rows(table, 0, 1 << 62).to_pylist())
        except Exception:  # noqa: BLE001 - not there yet
            return []

    def wait_for_rows(
        self, table: str, count: int = 1, seconds: float = 20
    ) -> list[dict[str, Any]]:
        return list(
            self.wait_until(
                lambda: rows if len(rows := self.rows(table)) >= count else None, seconds
            )
        )

    def wait_for_end(self, seconds: float = 60) -> tuple[int, dict[str, Any], str]:
        """Exit code, the JSON it printed, and what it said on standard error."""
        out, _ = self.process.communicate(timeout=seconds)
        return self.process.returncode, json.loads(out) if out.strip() else {}, self.said()

    def said(self) -> str:
        """Standard error so far."""
        return self._stderr.read_text()

    def stop(self, number: int = signal.SIGTERM) -> tuple[int, dict[str, Any], str]:
        self.process.send_signal(number)
        return self.wait_for_end()

    def kill(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        if self.process.stdout is not None:
            self.process.stdout.close()
        self._stderr.unlink(missing_ok=True)


@contextmanager
def served(recording: Path, browser: Path | None = None) -> Iterator[str]:
    """The address of `necroscope view` over a recording; `browser` is the program that it opens."""
    options = ["--no-browser"] if browser is None else []
    with subprocess.Popen(
        [*COMMAND, "view", str(recording), *options],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | ({} if browser is None else {"BROWSER": str(browser)}),
    ) as server:
        assert server.stdout is not None
        found = re.search(r"http\S+", server.stdout.readline())
        assert found is not None
        yield found[0]
        server.terminate()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Debian's Chromium, driven as a person would. Ends with the module: its driver keeps an event
    loop in this thread.
    """
    program = (
        shutil.which("chromium")
        or shutil.which("chromium-browser")
        or shutil.which("google-chrome")
    )
    if program is None:
        pytest.skip("Chromium is not installed")
    if not (STATIC / "index.html").exists():
        pytest.skip("the page was not built (scripts/setup builds it)")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.fixture(scope="session", autouse=True)
def undone_laboratory() -> None:
    """What a lab run that was killed earlier left on this machine would be seen by every recorder
    below.
    """
    if os.geteuid() == 0:
        subprocess.run([*COMMAND, "lab", "clean"], capture_output=True, timeout=100, check=True)


@pytest.fixture(scope="session", autouse=True)
def silent_log() -> Iterator[None]:
    """A terminal on which nothing is written, for recorders to read instead of /dev/kmsg."""
    ends = os.openpty()
    RunningRecorder.silent_log = os.ttyname(ends[1])
    yield
    for end in ends:
        os.close(end)


@pytest.fixture
def record(tmp_path: Path) -> Iterator[Callable[..., RunningRecorder]]:
    started = []

    def start(*options: str, directory: Path | None = None, **how: Any) -> RunningRecorder:
        recorder = RunningRecorder(directory or tmp_path / "recording", *options, **how)
        started.append(recorder)
        return recorder

    yield start
    for recorder in started:
        recorder.kill()


@pytest.fixture
def busy() -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    """Starts a Python program that is ended with the test."""
    started: list[subprocess.Popen[bytes]] = []

    def start(program: str, **options: Any) -> subprocess.Popen[bytes]:
        child = subprocess.Popen(
            [sys.executable, "-c", program],
            stdin=subprocess.DEVNULL,
            start_new_session=True,
            **options,
        )
        started.append(child)
        return child

    yield start
    for child in started:
        if child.poll() is None:
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()


@pytest.fixture(scope="module")
def leaks_of_module() -> Iterator[Callable[[], list[str]]]:
    """`leaks` for recorders that a whole module's tests look at."""
    mark = uuid.uuid4().hex
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(LEAK_MARK, mark)
        before = Footprint.take(mark)

        def left() -> list[str]:
            deadline = time.monotonic() + SETTLE_S
            while (
                found := Footprint.take(mark).left_since(before)
            ) and time.monotonic() < deadline:
                time.sleep(0.05)
            return found

        yield left
