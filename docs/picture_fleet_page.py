"""Makes docs/fleet-page.png: the fleet's page over a generated fleet, in a real Chromium. Run it
when the page has changed.
"""

import asyncio
import contextlib
import shutil
import socket
import tempfile
import threading
import time
from collections.abc import Iterator
from importlib.resources import as_file, files
from pathlib import Path

import uvicorn
from playwright.sync_api import sync_playwright

from necroscope.cli.view import recording_of
from necroscope.fleet.collector.app import create_fleet_app
from necroscope.fleet.demo_lake import write_demo_lake
from necroscope.fleet.lake import Lake
from necroscope.fleet.tokens import Grant, Tokens, digest_of

PICTURE = Path(__file__).with_name("fleet-page.png")
TOKEN = "reader"


def main() -> None:
    with (
        tempfile.TemporaryDirectory() as place,
        as_file(files("necroscope.lab")) as shipped,
    ):
        lake = Lake.open(f"{place}/lake")
        write_demo_lake(shipped / "demo_lake", shipped / "demo_recording", lake, time.time_ns())
        with served(lake) as address:
            take(f"{address}/#token={TOKEN}&event=nic_reset&since=-7d")


@contextlib.contextmanager
def served(lake: Lake) -> Iterator[str]:
    app = create_fleet_app(lake, Tokens({digest_of(TOKEN): Grant("*", "read")}), recording_of)
    listener = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning", access_log=False))
    server.capture_signals = contextlib.nullcontext  # type: ignore[method-assign]
    thread = threading.Thread(target=asyncio.run, args=(server.serve([listener]),))
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()


def take(address: str) -> None:
    program = shutil.which("chromium") or shutil.which("google-chrome")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1440, "height": 1000}, color_scheme="light")
        page.goto(address)
        page.wait_for_selector("#why .squares canvas")
        page.wait_for_selector(".bars canvas[data-ready=yes]")
        page.screenshot(path=PICTURE, full_page=True)
        browser.close()


if __name__ == "__main__":
    main()
