"""The time machine in a real Chromium: `python benchmarks/web.py [RECORDING]`; without one a day of
96 cores is generated.

Each number is measured in the page: what a person waits for, from the press of the key to the
picture on the screen.
"""

import gzip
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from generated_recording import START_NS, generate
from necroscope.views.web.export import STATIC
from web_recording import more_tables

BARS = {"first picture": 1500, "flame": 150, "lanes": 100, "frames": 50, "code": 300, "memory": 300}
CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
FLAME_S = 5
Row = tuple[str, str, str]
FRAMES_MS = 2000
# Draws as fast as the screen takes pictures while a wheel turns, and counts them.
_FRAMES = """async ([selector, duration, zooms]) => {
  const element = document.querySelector(selector);
  const box = element.getBoundingClientRect();
  let frames = 0, turned = 0;
  const began = performance.now();
  while (performance.now() - began < duration) {
    const wheel = { bubbles: true, cancelable: true, ctrlKey: zooms, shiftKey: !zooms, clientX: box.left + box.width / 3,
                    clientY: box.top + 20, deltaY: (turned++ % 40 < 20 ? -1 : 1) * 24 };
    element.dispatchEvent(new WheelEvent("wheel", wheel));
    await new Promise(requestAnimationFrame);
    frames += 1;
  }
  return frames / ((performance.now() - began) / 1000);
}"""
# From now until these lanes were answered again and have drawn it. A lane asks, and draws, only
# after the next picture: its title alone says nothing.
_DRAWN = """async (lanes) => {
  const began = performance.now();
  performance.clearResourceTimings();
  const isAnswered = (lane) => performance.getEntriesByType("resource").some(({ name }) => name.includes(`api/${lane}`));
  const isAsking = (lane) => document.querySelector(`#lane-${lane} .spinner`) !== null;
  const isOpen = () => lanes.some((lane) => !isAnswered(lane) || isAsking(lane));
  while (isOpen() && performance.now() - began < 10000) await new Promise(requestAnimationFrame);
  await new Promise(requestAnimationFrame);
  await new Promise((done) => setTimeout(done));
  return performance.now() - began;
}"""
# From another window in the address to the flame graph's new canvas.
_FLAME = f"""async (hash) => {{
  const drawn = ({_DRAWN})(["flame"]);
  location.hash = hash;
  dispatchEvent(new PopStateEvent("popstate"));
  return drawn;
}}"""
# From the end of a drag to the last lane that shows its window.
_BRUSH = f"""() => {{
  window.brushed = new Promise((done) =>
    addEventListener("pointerup", () => ({_DRAWN})(["flame", "heat", "tasks"]).then(done), {{ once: true, capture: true }}));
}}"""


@contextmanager
def served(recording: Path) -> Iterator[str]:
    command = [sys.executable, "-m", "necroscope", "view", str(recording), "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        found = re.search(r"http\S+", server.stdout.readline())
        assert found is not None
        try:
            yield found[0]
        finally:
            server.terminate()


def first_picture_ms(browser: Any, address: str) -> tuple[float, float]:
    """Until cells are in the core map, and until all of the recording is in it."""
    page = browser.new_page(viewport={"width": 1600, "height": 1000})
    began_s = time.monotonic()
    page.goto(address, wait_until="commit")
    page.wait_for_selector("#core-map[data-ready=yes]", timeout=60_000)
    first_ms = (time.monotonic() - began_s) * 1000
    page.wait_for_selector("#core-map[data-complete=yes]", timeout=120_000)
    whole_ms = (time.monotonic() - began_s) * 1000
    page.close()
    return first_ms, whole_ms


def flames_ms(page: Any, start_s: int) -> list[float]:
    """Windows of five seconds of a busy segment, one core each and all cores."""
    found = []
    for number in range(12):
        from_us = START_NS // 1000 + (start_s + number * 7) * 1_000_000
        view = f"view={START_NS // 1000}-{START_NS // 1000 + 300_000_000}"
        hash_text = f"#{view}&window={from_us}-{from_us + FLAME_S * 1_000_000}&mode=system&core={number % 8}"
        found.append(page.evaluate(_FLAME, hash_text))
        page.wait_for_timeout(300)
    return found[2:]


def brushes_ms(page: Any, core: str) -> list[float]:
    """Windows of five seconds in a view of five minutes, by drags over the core map."""
    first = START_NS // 1000
    page.evaluate(
        _FLAME,
        f"#view={first}-{first + 300_000_000}&window={first}-{first + 5_000_000}&mode=system{core}",
    )
    box = page.locator("#lane-cores .surface").bounding_box()
    found = []
    for number in range(12):
        left = box["x"] + box["width"] * (0.1 + 0.06 * number)
        page.mouse.move(left, box["y"] + 20)
        page.mouse.down()
        page.mouse.move(left + box["width"] * FLAME_S / 300, box["y"] + 20)
        page.evaluate(_BRUSH)
        page.mouse.up()
        found.append(page.evaluate("window.brushed"))
        page.wait_for_timeout(300)
    return found[2:]


def large_flame(page: Any) -> int:
    """All cores and four minutes of a busy segment: a graph of tens of thousands of frames."""
    first = START_NS // 1000
    window = f"window={first + 1_000_000}-{first + 280_000_000}"
    page.evaluate(_FLAME, f"#view={first}-{first + 300_000_000}&{window}&mode=busy&group=process")
    page.wait_for_selector("#lane-flame h2:has-text('4.65 min')")
    page.wait_for_selector("#lane-flame .spinner", state="hidden", timeout=60_000)
    return int(page.get_attribute("#flame", "data-nodes"))


def frames_rows(page: Any, what: str, selector: str) -> list[Row]:
    """By the clock, and by the processor time of a picture, which says what a machine with nothing
    else to do shows.
    """
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})
    rows: list[Row] = []
    for word, zooms in (("pan", False), ("zoom", True)):
        before_s = _thread_s(session)
        rate = page.evaluate(_FRAMES, [selector, FRAMES_MS, zooms])
        cost_ms = (_thread_s(session) - before_s) * 1000 / (rate * FRAMES_MS / 1000)
        rows.append(
            (
                f"{word} of {what}",
                f"{rate:.0f} frames a second, {cost_ms:.1f} ms each",
                f">= {BARS['frames']}",
            )
        )
    session.detach()
    return rows


def _thread_s(session: Any) -> float:
    return float(
        next(
            item["value"]
            for item in session.send("Performance.getMetrics")["metrics"]
            if item["name"] == "TaskDuration"
        )
    )


def memory_mb(browser: Any) -> float:
    """What the largest tab's process holds for itself, arrays and pictures included."""
    processes = browser.new_browser_cdp_session().send("SystemInfo.getProcessInfo")["processInfo"]
    pids = [item["id"] for item in processes if item["type"] == "renderer"]
    return max(_private_kb(pid) for pid in pids) / 1000


def _private_kb(pid: int) -> int:
    rows = (line.split() for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines())
    return sum(int(row[1]) for row in rows if row[0].startswith("Private_"))


def code_kb() -> float:
    files = [STATIC / "index.html", *(STATIC / "assets").iterdir()]
    return sum(len(gzip.compress(path.read_bytes())) for path in files) / 1000


def opened_rows(browser: Any, address: str) -> list[Row]:
    first_ms, whole_ms = first_picture_ms(browser, address)
    return [
        (
            "first useful picture, server just started",
            f"{first_ms:.0f} ms",
            f"< {BARS['first picture']} ms",
        ),
        ("the whole recording in the core map", f"{whole_ms:.0f} ms", "-"),
    ]


def page_rows(browser: Any, address: str) -> list[Row]:
    page = browser.new_page(viewport={"width": 1600, "height": 1000})
    page.goto(address)
    page.wait_for_selector("#core-map[data-complete=yes]", timeout=60_000)
    rows = frames_rows(page, "the core map", "#lane-cores .surface")
    times = flames_ms(page, 20)
    rows.append(
        (
            f"flame graph of {FLAME_S} s, median",
            f"{statistics.median(times):.0f} ms",
            f"< {BARS['flame']} ms",
        )
    )
    rows.append((f"flame graph of {FLAME_S} s, worst of {len(times)}", f"{max(times):.0f} ms", "-"))
    for who, core in (("one core", "&core=3"), ("all cores", "")):
        times = brushes_ms(page, core)
        what = f"all lanes after a brush of {FLAME_S} s, {who}"
        rows.append(
            (f"{what}, median", f"{statistics.median(times):.0f} ms", f"< {BARS['lanes']} ms")
        )
        rows.append((f"{what}, worst of {len(times)}", f"{max(times):.0f} ms", "-"))
    rows += frames_rows(page, f"a flame graph of {large_flame(page):,} frames", "#flame")
    rows.append(("memory of the tab", f"{memory_mb(browser):.0f} MB", f"< {BARS['memory']} MB"))
    return rows


def measure(recording: Path) -> list[Row]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright, served(recording) as address:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        rows = opened_rows(browser, address) + page_rows(browser, address)
        browser.close()
    return [*rows, ("own code, gzipped", f"{code_kb():.0f} KB", f"< {BARS['code']} KB")]


def main() -> None:
    with tempfile.TemporaryDirectory() as work:
        recording = (
            Path(sys.argv[1])
            if len(sys.argv) > 1
            else generate(Path(work) / "day", 24, full_every=288, more=more_tables)
        )
        for row in measure(recording):
            print("| " + " | ".join(row) + " |")


if __name__ == "__main__":
    main()
