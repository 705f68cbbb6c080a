"""Makes docs/pictures, the time machine over the demo's recording, and the pictures of case studies
over theirs, light and dark, as Debian's Chromium shows them.

`scripts/pictures [NAME...]`. A picture is a palette of 256 colours, so that a page with two of them
loads quickly.
"""

import base64
import re
import shutil
import struct
import subprocess
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from playwright.sync_api import sync_playwright

PICTURES = Path(__file__).parent / "pictures"
LAB = Path(__file__).parents[1] / "tests/data/lab"
WIDTH, HEIGHT = 1280, 900
MOST_BYTES = 200_000
PIXELS = """async (png) => {
  const image = await createImageBitmap(await (await fetch("data:image/png;base64," + png)).blob());
  const canvas = new OffscreenCanvas(image.width, image.height);
  const context = canvas.getContext("2d");
  context.drawImage(image, 0, 0);
  const bytes = context.getImageData(0, 0, image.width, image.height).data;
  let text = "";
  for (let at = 0; at < bytes.length; at += 32768) text += String.fromCharCode(...bytes.subarray(at, at + 32768));
  return btoa(text);
}"""
Picture = np.ndarray[Any, np.dtype[np.uint8]]


def main(names: list[str]) -> None:
    PICTURES.mkdir(exist_ok=True)
    program = shutil.which("chromium") or shutil.which("google-chrome")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        for name in names or SCENES:
            scene = SCENES[name]
            with served(scene.recording) as address:
                for scheme in ("light", "dark"):
                    picture = shot(browser, address, scene.show, scheme)
                    file = PICTURES / f"{name}-{scheme}.png"
                    file.write_bytes(palette_png(pixels(browser, picture)))
                    sys.stdout.write(f"{file.name}: {file.stat().st_size / 1000:.0f} KB\n")
                    assert file.stat().st_size < MOST_BYTES, f"{file.name} is too large"
        browser.close()


@contextmanager
def served(recording: Path | None) -> Iterator[str]:
    """The page over a recording, or over the demo's."""
    words = ["demo"] if recording is None else ["view", str(recording)]
    command = [sys.executable, "-m", "necroscope", *words, "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            yield next(found[0] for line in server.stdout if (found := re.search(r"http\S+", line)))
        finally:
            server.terminate()


def shot(browser: Any, address: str, scene: Callable[[Any], None], scheme: str) -> bytes:
    context = browser.new_context(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme=scheme)
    page = context.new_page()
    page.goto(address)
    page.wait_for_selector("#flame canvas")
    scene(page)
    page.wait_for_selector(".spinner", state="detached")
    page.wait_for_selector(".lane.lit", state="detached")
    page.mouse.move(0, 0)
    page.wait_for_timeout(800)  # colours fade
    taken: bytes = page.screenshot()
    context.close()
    return taken


def whole_page(page: Any) -> None:
    page.wait_for_selector("#core-map[data-complete=yes]")


def differential(page: Any) -> None:
    page.click("#compare")
    page.wait_for_selector("#lane-flame .key:has-text('more than in the baseline')")
    page.locator("#lane-flame").scroll_into_view_if_needed()


def lock_holder(page: Any) -> None:
    """The lane of waits, with the longest one of who stands behind the lock opened."""
    page.wait_for_selector(".wait-label")
    page.keyboard.press("s")
    page.wait_for_selector("#wait")
    page.locator("#lane-waits").scroll_into_view_if_needed()


class Scene(NamedTuple):
    """What is shown of which recording, the demo's if none is named."""

    show: Callable[[Any], None]
    recording: Path | None = None


SCENES = {
    "page": Scene(whole_page),
    "differential": Scene(differential),
    "idle-cores": Scene(lock_holder, LAB / "file-write-convoy"),
}


def pixels(browser: Any, png: bytes) -> Picture:
    page = browser.new_page()
    content = base64.b64decode(page.evaluate(PIXELS, base64.b64encode(png).decode()))
    page.close()
    width, height = struct.unpack(">II", png[16:24])
    return np.frombuffer(content, np.uint8).reshape(height, width, 4)[:, :, :3]


def palette_png(picture: Picture) -> bytes:
    """The commonest colours, and for each other one the nearest of them."""
    height, width, _ = picture.shape
    packed = picture.astype(np.uint32) @ np.array([1 << 16, 1 << 8, 1], np.uint32)
    colours, place, count = np.unique(packed, return_inverse=True, return_counts=True)
    values = np.stack([colours >> 16, colours >> 8 & 255, colours & 255], axis=1).astype(np.int32)
    kept = values[np.argsort(-count, kind="stable")[:256]]
    # In pieces: all distances at once are a gigabyte.
    nearest = np.concatenate(
        [
            ((part[:, None] - kept) ** 2).sum(axis=2).argmin(axis=1)
            for part in np.array_split(values, 64)
        ]
    )
    rows = np.hstack(
        [np.zeros((height, 1), np.uint8), nearest[place].reshape(height, width).astype(np.uint8)]
    )
    chunks = [
        (b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)),
        (b"PLTE", kept.astype(np.uint8).tobytes()),
    ]
    chunks += [(b"IDAT", zlib.compress(rows.tobytes(), 9)), (b"IEND", b"")]
    framed = (
        struct.pack(">I", len(text)) + kind + text + struct.pack(">I", zlib.crc32(kind + text))
        for kind, text in chunks
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(framed)


if __name__ == "__main__":
    main(sys.argv[1:])
