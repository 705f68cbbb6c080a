"""`necroscope import` as a user runs it."""

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from necroscope.cli.view import recording_of
from necroscope.store.query import Store
from necroscope.views.web.app import make_app

DATA = Path(__file__).parents[1] / "data" / "interchange"
LOCKUP = (
    "2026-04-12T13:20:00,500000+00:00 watchdog: BUG: soft lockup - CPU#3 stuck for 23s!"
    " [dockerd:1234]\n"
)


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "necroscope", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_files_of_many_kinds_are_one_recording(tmp_path):
    done = run(
        "import",
        DATA / "wall_clock.data",
        DATA / "mpstat.json",
        DATA / "dmesg_iso.txt",
        "--dir",
        tmp_path / "out",
        "--json",
    )
    assert (done.returncode, done.stderr) == (0, "")
    answer = json.loads(done.stdout)
    info = json.loads(run("info", "--json", tmp_path / "out").stdout)
    assert {"samples", "stacks", "frames", "cores", "log"} <= set(info["tables"])
    assert {name: answer["rows"][name] for name in ("samples", "cores", "log")} == {
        name: info["tables"][name] for name in ("samples", "cores", "log")
    }
    assert [file["kind"] for file in answer["files"]] == ["perf.data", "mpstat", "dmesg"]


def test_the_kernel_log_is_read_for_events(tmp_path):
    log = tmp_path / "dmesg.txt"
    log.write_text(LOCKUP)
    assert run("import", log, "--dir", tmp_path / "out").returncode == 0
    info = json.loads(run("info", "--json", tmp_path / "out").stdout)
    assert (info["tables"]["log"], info["tables"]["events"]) == (1, 1)


def test_text_says_what_was_read_and_what_has_no_name(tmp_path):
    done = run(
        "import",
        DATA / "file.data",
        "--dir",
        tmp_path / "out",
        "--kallsyms",
        DATA / "kernel_symbols.txt",
    )
    assert done.returncode == 0
    assert "file.data: perf.data" in done.stdout
    assert "could not be named" in done.stdout
    assert "times are not wall clock" in done.stdout
    assert f"necroscope info {tmp_path / 'out'}" in done.stdout


def test_bad_words_end_with_an_error_a_hint_and_no_directory(tmp_path):
    out = tmp_path / "out"
    assert run("import", DATA / "file.data", "--dir", out, "--utc-offset", "2h").returncode == 2
    assert (
        run("import", DATA / "file.data", "--dir", out, "--kallsyms", tmp_path / "none").returncode
        == 2
    )
    (tmp_path / "bad").write_bytes(bytes(1000))
    done = run("import", tmp_path / "bad", "--dir", out)
    assert done.returncode == 2
    assert done.stderr.startswith("error: ")
    assert "hint: " in done.stderr
    assert not out.exists()
    assert run("import", DATA / "file.data", "--dir", out).returncode == 0
    again = run("import", DATA / "file.data", "--dir", out)
    assert (again.returncode, "holds a recording already" in again.stderr) == (4, True)


@pytest.mark.parametrize(
    ("words", "fact"),
    [
        (["--from", "2026-04-15T10:30:00Z", "--to", "2026-04-15T10:30:00Z"], "not before"),
        (["--binaries", "/nonexistent"], "/nonexistent"),
        (["--perf-maps", "/nonexistent"], "/nonexistent"),
    ],
)
def test_bad_options_get_facts_and_a_hint(tmp_path, words, fact):
    done = run("import", DATA / "file.data", "--dir", tmp_path / "out", *words)
    assert done.returncode == 2
    assert fact in done.stderr
    assert "\nhint: " in done.stderr


def test_what_was_imported_is_diagnosed_and_shown(tmp_path):
    out = tmp_path / "out"
    assert (
        run(
            "import",
            DATA / "wall_clock.data",
            DATA / "mpstat_24h.txt",
            DATA / "dmesg_iso.txt",
            "--dir",
            out,
        ).returncode
        == 0
    )
    done = run("diagnose", out, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    assert set(json.loads(done.stdout)) >= {"schema", "incidents", "gaps"}
    app = make_app(recording_of(Store.open(out)), "t", frozenset({"localhost"}))

    async def ask() -> httpx.Response:
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            return await client.get("/api/recording", headers={"authorization": "Bearer t"})

    answer = asyncio.run(ask())
    assert answer.status_code == 200
    assert {"samples", "cores", "log"} <= set(answer.json()["tables"])


def test_a_kernel_log_given_straight_has_its_events(tmp_path):
    log = tmp_path / "dmesg.txt"
    log.write_text(f"2026-04-12T13:15:00+00:00 before\n{LOCKUP}2026-04-12T13:21:00+00:00 after\n")
    done = run("diagnose", log, "--json")
    assert done.returncode == 0
    kinds = [
        event["kind"]
        for incident in json.loads(done.stdout)["incidents"]
        for event in incident["events"]
    ]
    assert kinds == ["soft_lockup"]
