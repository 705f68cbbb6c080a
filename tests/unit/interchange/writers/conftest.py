"""A small window drawn as text, and other people's importers, fetched by npm into a temporary
directory where node is there.
"""

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from necroscope.interchange.writers.window import WindowFacts
from necroscope.model.tables import TABLES
from necroscope.segment.arrow import schema_of

START_NS = 1_790_000_000_000_000_000
MS = 1_000_000
HOSTILE = [
    "<script>alert(1)</script>",
    "semi;colon",
    "quote\"and'quote",
    "new\nline",
    "]]></style></script>",
    "bell\x07tab\t",
    "line\u2028separator",
    "&amp;",
    "back\\slash",
    "operator()(int) [clone .part.0]",
]
PACKAGES = ["speedscope@1.20.0", "@firefox-devtools/profiler-cli@0.10.0", "ajv@8.17.1"]


@dataclass(frozen=True)
class Tables:
    samples: pa.Table
    stacks: pa.Table
    frames: pa.Table


def draw(lines: str) -> Tables:
    """A sample a line: `ms core comm pid/tid weight outer>inner`; a frame `name` is user, `name'`
    kernel, `@hex` nameless.
    """
    frames: dict[tuple[object, ...], int] = {}
    stacks: dict[tuple[int, int], int] = {}
    samples = []
    for line in filter(str.strip, lines.splitlines()):
        ms, core, comm, task, weight, path = line.split(maxsplit=5)
        stack = -1
        for name in path.split(">") if path != "-" else []:
            number = frames.setdefault(frame_of(name), len(frames))
            stack = stacks.setdefault((stack, number), len(stacks))
        pid, tid = task.split("/")
        time_ns = START_NS + int(float(ms) * MS)
        samples.append(
            (time_ns, int(core), int(pid), int(tid), comm, f"/{comm}.service", stack, int(weight))
        )
    return tables_of(samples, stacks, frames)


def frame_of(name: str) -> tuple[object, ...]:
    if name.startswith("@"):
        return (
            None,
            "/usr/lib/libfoo.so.1",
            "user",
            int(name[1:], 16),
            "abcdef0123456789abcdef0123456789abcdef01",
        )
    return (
        (name[:-1], "[kernel]", "kernel", None, None)
        if name.endswith("'")
        else (name, "/bin/app", "user", None, "00" * 20)
    )


def tables_of(
    samples: list[tuple[object, ...]],
    stacks: dict[tuple[int, int], int],
    frames: dict[tuple[object, ...], int],
) -> Tables:
    def table(name: str, rows: list[tuple[object, ...]]) -> pa.Table:
        schema = schema_of(TABLES[name])
        columns = list(zip(*rows, strict=True)) or [[] for _ in schema]
        return pa.table(
            [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)],
            schema=schema,
        )

    return Tables(
        table("samples", samples),
        table("stacks", [(number, parent, frame) for (parent, frame), number in stacks.items()]),
        table("frames", [(number, *frame) for frame, number in frames.items()]),
    )


def hostile_tables() -> Tables:
    """Every hostile text as a frame, a module, a comm and a cgroup."""
    frames = {(text, text, "user", None, None): number for number, text in enumerate(HOSTILE)}
    stacks = {(number - 1, number): number for number in range(len(HOSTILE))}
    samples = [
        (START_NS + n * 10 * MS, n % 2, n + 1, n + 1, text, text, n, 1)
        for n, text in enumerate(HOSTILE)
    ]
    return tables_of(samples, stacks, frames)


@pytest.fixture
def tables() -> Tables:
    return draw("""
        0    0 app    10/10 1 main>work>do_syscall_64'>mem_cgroup_iter'
        10   0 app    10/10 1 main>work>do_syscall_64'>mem_cgroup_iter'
        12   1 app    10/11 1 main>idle_work
        20   0 nginx  20/20 1 main>@1f3a0
        50   0 app    10/10 1 main>work
        60   1 lost   30/31 1 -
    """)


@pytest.fixture
def facts() -> WindowFacts:
    return WindowFacts(
        "node-7", START_NS, START_NS + 100 * MS, 10 * MS, ("2 s of samples: journal torn",)
    )


@pytest.fixture(scope="session")
def importers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """node_modules with speedscope's and Firefox Profiler's own importers."""
    if not shutil.which("node") or not shutil.which("npm"):
        pytest.skip("node and npm are not installed: the viewers' own importers cannot run")
    directory = tmp_path_factory.mktemp("importers")
    command = [
        "npm",
        "install",
        "--no-save",
        "--ignore-scripts",
        "--no-audit",
        "--no-fund",
        "--prefix",
        str(directory),
        *PACKAGES,
    ]
    try:
        result = subprocess.run(command, capture_output=True, text=True, timeout=90)
    except subprocess.TimeoutExpired:
        pytest.skip("npm did not fetch the viewers' importers within 90 s")
    if result.returncode:
        pytest.skip(f"npm cannot fetch the viewers' importers: {result.stderr.strip()[-200:]}")
    return directory / "node_modules"


@dataclass(frozen=True)
class Hostile:
    texts: list[str]
    tables: Tables


@pytest.fixture
def hostile() -> Hostile:
    return Hostile(HOSTILE, hostile_tables())


# pprof's schema, https://github.com/google/pprof/blob/main/proto/profile.proto. A message's fields
# in the order of their numbers, from 1: `*` repeated, a capital letter a message, `s` text, `b`
# truth, `u` unsigned, else a signed number.
PPROF_MESSAGES = {
    "Profile": (
        "*sample_type:ValueType *sample:Sample *mapping:Mapping *location:Location"
        " *function:Function *string_table:s drop_frames keep_frames time_nanos duration_nanos"
        " period_type:ValueType period *comment default_sample_type doc_url"
    ),
    "ValueType": "type unit",
    "Sample": "*location_id:u *value *label:Label",
    "Label": "key str num num_unit",
    "Mapping": (
        "id:u memory_start:u memory_limit:u file_offset:u filename build_id has_functions:b"
        " has_filenames:b has_line_numbers:b has_inline_frames:b"
    ),
    "Location": "id:u mapping_id:u address:u *line:Line is_folded:b",
    "Line": "function_id:u line column",
    "Function": "id:u name system_name filename start_line",
}


@pytest.fixture
def pprof_class() -> Any:
    """The schema's Profile as a class of protobuf's own, which decodes what we encoded by hand."""
    descriptor_pb2 = pytest.importorskip(
        "google.protobuf.descriptor_pb2", reason="protobuf is not installed"
    )
    from google.protobuf import descriptor_pool, message_factory

    kinds = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(
        name="profile.proto", package="perftools.profiles", syntax="proto3"
    )
    for name, fields in PPROF_MESSAGES.items():
        message = file.message_type.add(name=name)
        for number, text in enumerate(fields.split(), start=1):
            field, _, kind = text.partition(":")
            label = kinds.LABEL_REPEATED if field.startswith("*") else kinds.LABEL_OPTIONAL
            scalar = {
                "": kinds.TYPE_INT64,
                "u": kinds.TYPE_UINT64,
                "s": kinds.TYPE_STRING,
                "b": kinds.TYPE_BOOL,
            }
            added = message.field.add(name=field.strip("*"), number=number, label=label)
            added.type = scalar.get(kind, kinds.TYPE_MESSAGE)
            if kind[:1].isupper():
                added.type_name = f".perftools.profiles.{kind}"
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("perftools.profiles.Profile"))
