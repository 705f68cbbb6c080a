"""The server's answers over a drawn recording, as the page reads them."""

import asyncio
import base64
import gzip
import hashlib
import json
import struct
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from tests.drawn_recording import at, draw
from tests.written_recording import WrittenSegment, new_recording

from necroscope.model.reading import Gap
from necroscope.model.units import NS_PER_S
from necroscope.store.query import Store
from necroscope.views.web import app, core_pictures
from necroscope.views.web.app import ServedRecording, make_app
from necroscope.views.web.reports import Reports

DRAWN = """
    time:  0.0   1.0        2.0
    comm:  sh    worker 12  sh
    cpu:   0     1          1
           main  main       main
           read  run        read
           .     .          vfs_read@kernel
"""
HOUR_NS = 3600 * NS_PER_S
DAY_NS = 24 * HOUR_NS
TYPES = {"u8": np.uint8, "i32": np.int32, "u32": np.uint32, "f32": np.float32, "f64": np.float64}


class Page:
    """Asks as the page does."""

    def __init__(self, directory: Path, static: Path | None = None) -> None:
        recording = ServedRecording(
            Store.open(directory),
            "1.0",
            lambda directory, at_ns, span: {"incidents": [], "asked": at_ns},
            lambda store, from_ns, to_ns, selection: b'{"profiles": []}',
        )
        self._app = make_app(
            recording, "t", frozenset({"localhost"}), static or directory / "no-page"
        )

    def get(self, path: str, **query: object) -> httpx.Response:
        async def run() -> httpx.Response:
            transport = httpx.ASGITransport(self._app)
            async with httpx.AsyncClient(
                transport=transport, base_url="http://localhost"
            ) as client:
                return await client.get(path, params=query, headers={"authorization": "Bearer t"})

        return asyncio.run(run())

    def arrays(self, path: str, **query: object) -> tuple[dict, dict[str, np.ndarray]]:
        return unpacked(self.get(path, **query).content)


def unpacked(data: bytes) -> tuple[dict, dict[str, np.ndarray]]:
    (length,) = struct.unpack_from("<I", data)
    header = json.loads(data[4 : 4 + length])
    place = -(-(4 + length) // 8) * 8
    arrays = {}
    for item in header["arrays"]:
        count = int(np.prod(item["shape"]))
        kind = np.dtype(TYPES[item["type"]])
        arrays[item["name"]] = np.frombuffer(data, kind, count, place).reshape(item["shape"])
        place += -(-count * kind.itemsize // 8) * 8
    return header, arrays


@pytest.fixture
def page(tmp_path: Path) -> Page:
    return Page(draw(tmp_path / "r", DRAWN, until=5))


WINDOW = {"from_ns": at(0), "to_ns": at(9)}


def test_the_recording_is_described_with_moments_as_digits(page: Page) -> None:
    answer = page.get("/api/recording").json()
    assert answer["node"] == "node-a"
    assert answer["from"] == str(at(0))
    assert answer["live"] is False


def test_a_flame_graph_has_parents_before_children_and_children_by_name(page: Page) -> None:
    header, arrays = page.arrays("/api/flame", **WINDOW)
    names = [header["names"][number] for number in arrays["name"]]
    assert names == ["main", "read", "run", "vfs_read"]
    assert arrays["parent"].tolist() == [-1, 0, 0, 1]
    assert arrays["total"].tolist() == [3, 2, 1, 1]
    assert arrays["self"].tolist() == [0, 1, 1, 1]
    assert header["samples"] == 3


def test_frames_of_a_depth_stand_from_left_to_right(tmp_path: Path) -> None:
    drawn = """
        time:  0.0   1.0   2.0   3.0
               main  main  main  main
               z     b     z     a
               k     y     c     x
    """
    header, arrays = Page(draw(tmp_path / "r", drawn, until=5)).arrays("/api/flame", **WINDOW)
    names = [header["names"][number] for number in arrays["name"]]
    assert names == ["main", "a", "b", "z", "x", "y", "c", "k"]
    assert arrays["left"].tolist() == [0, 0, 0.25, 0.5, 0, 0.25, 0.5, 0.75]
    assert arrays["width"].tolist() == [1, 0.25, 0.25, 0.5, *[0.25] * 4]


def test_frames_too_narrow_to_be_seen_are_not_sent_and_leave_their_place(page: Page) -> None:
    header, arrays = page.arrays("/api/flame", **WINDOW, least=0.5)
    assert [header["names"][number] for number in arrays["name"]] == ["main", "read"]
    assert arrays["parent"].tolist() == [-1, 0]
    assert (header["frames"], header["names"]) == (4, ["main", "read"])


def test_a_flame_graph_of_one_core_or_name_has_only_its_samples(page: Page) -> None:
    assert page.arrays("/api/flame", **WINDOW, cpu=1)[0]["samples"] == 2
    assert page.arrays("/api/flame", **WINDOW, comm="worker 12")[0]["samples"] == 1
    assert page.arrays("/api/flame", **WINDOW, frames="vfs_")[0]["samples"] == 1


def test_a_differential_has_both_windows(page: Page) -> None:
    query = {"from_ns": at(2), "to_ns": at(3), "baseline_from_ns": at(0), "baseline_to_ns": at(2)}
    header, arrays = page.arrays("/api/flame", **query)
    assert (header["samples"], header["baseline_samples"]) == (1, 2)
    by_name = {header["names"][name]: place for place, name in enumerate(arrays["name"])}
    assert arrays["baseline_total"][by_name["vfs_read"]] == 0
    assert arrays["share"][by_name["vfs_read"]] == 1.0


def test_a_heat_map_counts_samples_by_offset(page: Page) -> None:
    header, arrays = page.arrays("/api/heat", from_ns=at(0), to_ns=at(3), rows=10)
    assert arrays["weights"].shape == (10, 3)
    assert arrays["weights"].sum() == 3
    assert header["samples"] == 3


def test_cores_that_were_not_recorded_are_said_to_be_so(page: Page) -> None:
    _, arrays = page.arrays("/api/cores", from_ns=at(0), to_ns=at(5), columns=5)
    assert (arrays["system"] == 255).any()


@pytest.mark.parametrize(
    ("path", "query"),
    [
        ("/api/flame", {"from_ns": at(2), "to_ns": at(1)}),
        ("/api/flame", {"from_ns": at(0), "to_ns": at(1), "frames": "("}),
        ("/api/flame", {"from_ns": -1, "to_ns": at(1)}),
        ("/api/flame", {"from_ns": "x", "to_ns": at(1)}),
        ("/api/cores", {"from_ns": at(0), "to_ns": at(1), "columns": 10**9}),
        ("/api/heat", {"from_ns": at(0), "to_ns": at(1), "rows": 0}),
        ("/api/events", {"from_ns": at(0)}),
        ("/api/tasks", {"from_ns": at(0), "to_ns": at(1), "cpu": 10**9}),
        ("/api/tasks", {"from_ns": at(0), "to_ns": at(1), "cpu": "+0.0"}),
    ],
)
def test_bad_words_get_facts_and_a_way_out(page: Page, path: str, query: dict) -> None:
    answer = page.get(path, **query)
    assert answer.status_code in (400, 422)
    assert set(answer.json()) == {"error", "hint"}


def test_lists_documents_and_the_description_are_there(page: Page) -> None:
    for path in ("/api/events", "/api/tasks", "/api/cgroups", "/api/gaps", "/api/speedscope"):
        assert page.get(path, **WINDOW).status_code == 200, path
    assert page.get("/api/report", at_ns=at(1)).json()["asked"] == at(1)
    assert "/api/flame" in page.get("/openapi.json").json()["paths"]


@pytest.mark.parametrize(
    "path", ["/../recording.json", "/%2e%2e/recording.json", "/..%2frecording.json", "/etc/passwd"]
)
def test_paths_cannot_leave_the_page(page: Page, path: str) -> None:
    assert page.get(path).status_code == 404


def test_a_page_that_was_not_built_says_how_to_build_it(page: Page) -> None:
    answer = page.get("/")
    assert answer.status_code == 503
    assert "npm run build" in answer.text


@pytest.fixture
def built(tmp_path: Path) -> Page:
    """With a page whose script and style try to end their elements early."""
    static = tmp_path / "static"
    (static / "assets").mkdir(parents=True)
    (static / "speedscope").mkdir()
    (static / "index.html").write_text("the page")
    (static / "speedscope" / "index.html").write_text("speedscope")
    (static / "assets" / "page.js").write_text('const a = "</script><b>";')
    (static / "assets" / "page.css").write_text("a { content: '</style>' }")
    return Page(draw(tmp_path / "r", DRAWN, until=5), static)


def test_the_page_is_served_and_speedscope_has_a_policy_of_its_own(built: Page) -> None:
    assert built.get("/").text == "the page"
    assert "wasm-unsafe-eval" not in built.get("/").headers["content-security-policy"]
    assert (
        "'wasm-unsafe-eval'"
        in built.get("/speedscope/index.html").headers["content-security-policy"]
    )


def test_an_export_holds_script_style_and_data_and_runs_nothing_else(built: Page) -> None:
    answer = built.get("/api/export", **WINDOW, state='core=1"><script>alert(1)</script>')
    html = answer.text
    assert "attachment" in answer.headers["content-disposition"]
    assert html.count("<script") == 2
    assert html.count("</script>") == 2
    assert html.count("</style>") == 1
    assert "alert" not in html
    script = html.split('<script type="module">')[1].split("</script>")[0]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in html
    data = gzip.decompress(base64.b64decode(html.split('id="embedded">')[1].split("<")[0]))
    header, arrays = unpacked(data)
    assert header["recording"]["node"] == "node-a"
    assert len(arrays["time"]) == 3
    assert [header["who"][number][1] for number in arrays["task"]] == ["sh", "worker 12", "sh"]


def test_an_export_says_if_incidents_were_still_looked_for(built: Page, monkeypatch) -> None:
    unfinished = {
        "incidents": [],
        "notes": [],
        "failed": [],
        "is_complete": False,
        "progress": 0.25,
    }
    monkeypatch.setattr(Reports, "answer", lambda *_: unfinished)
    html = built.get("/api/export", **WINDOW).text
    header, _ = unpacked(
        gzip.decompress(base64.b64decode(html.split('id="embedded">')[1].split("<")[0]))
    )
    assert header["report"]["is_complete"] is True
    assert "25% of the recording" in header["report"]["notes"][0]


def gaps_of(directory: Path, gaps: list[Gap]) -> dict[str, Any]:
    page = Page(draw(directory, DRAWN, gaps=gaps, until=5))
    return page.get("/api/gaps", from_ns=at(0), to_ns=max(gap.to_ns for gap in gaps)).json()


def test_gaps_that_lie_apart_stay_apart_however_many_they_are(tmp_path: Path) -> None:
    gaps = [
        Gap("cores", at(0) + day * DAY_NS, at(0) + day * DAY_NS + HOUR_NS, "restarted")
        for day in range(600)
    ]
    answer = gaps_of(tmp_path / "many", gaps)
    assert {int(gap["to"]) - int(gap["from"]) for gap in answer["gaps"]} == {HOUR_NS}
    assert answer["left_out"] == ["100 short gaps are not hatched"]
    assert answer["is_exact"] is False
    fewer = gaps_of(tmp_path / "fewer", gaps[:500])
    assert (len(fewer["gaps"]), fewer["is_exact"], fewer["left_out"]) == (500, True, [])


def test_gaps_of_segment_after_segment_are_one(tmp_path: Path) -> None:
    hours = [at(0) + number * HOUR_NS for number in range(601)]
    (gap,) = gaps_of(
        tmp_path / "r", [Gap("softirq_delay", *ends, "no BPF") for ends in pairwise(hours)]
    )["gaps"]
    assert (gap["from"], gap["to"]) == (str(hours[0]), str(hours[-1]))


def test_of_too_many_gaps_those_of_all_cores_and_the_longest_are_hatched(tmp_path: Path) -> None:
    gaps = [
        Gap("cores", at(0) + day * DAY_NS, at(0) + day * DAY_NS + day, "x", cpu=1)
        for day in range(600)
    ]
    gaps += [Gap("cores", at(0) + day * DAY_NS, at(0) + day * DAY_NS + 1, "x") for day in range(2)]
    shown = gaps_of(tmp_path / "r", gaps)["gaps"]
    assert [gap["cpu"] for gap in shown[:3]] == [None, None, 1]
    assert int(shown[2]["to"]) - int(shown[2]["from"]) == 599


def test_gaps_are_of_the_window(tmp_path: Path) -> None:
    page = Page(
        draw(tmp_path / "r", DRAWN, gaps=[Gap("samples", at(1), at(2), "overran", lost=3)], until=5)
    )
    (gap,) = page.get("/api/gaps", **WINDOW).json()["gaps"]
    assert gap == {
        "table": "samples",
        "from": str(at(1)),
        "to": str(at(2)),
        "cause": "overran",
        "cpu": None,
    }
    assert page.get("/api/gaps", from_ns=at(3), to_ns=at(4)).json() == {
        "gaps": [],
        "is_exact": True,
        "left_out": [],
    }


def test_a_core_that_went_offline_before_the_end_has_its_row(tmp_path: Path) -> None:
    recording = new_recording(tmp_path / "r")
    WrittenSegment(recording, 0).ticks(0, 60, cpus=4).seal()
    WrittenSegment(recording, 300).ticks(300, 600).seal()
    assert Page(recording).get("/api/recording").json()["cpus"] == [0, 1, 2, 3]


@pytest.mark.parametrize("path", ["/api/events", "/api/tasks", "/api/cgroups"])
def test_lists_end_at_the_time_limit_and_say_so(page: Page, monkeypatch, path: str) -> None:
    assert page.get(path, **WINDOW).json()["left_out"] == []
    monkeypatch.setattr(app, "TIME_LIMIT_S", 0.0)
    (answer,) = page.get(path, **WINDOW).json()["left_out"]
    assert answer.startswith("the time limit of 0 s")


def test_cores_end_at_the_time_limit_and_say_so(page: Page, monkeypatch) -> None:
    monkeypatch.setattr(core_pictures, "_TIME_LIMIT_S", 0.0)
    header, arrays = page.arrays("/api/cores", from_ns=at(0), to_ns=at(5), columns=5)
    assert header["left_out"][0].startswith("the time limit of 0 s")
    assert (arrays["system"] == 255).all()
