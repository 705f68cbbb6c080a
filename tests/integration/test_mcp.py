"""The command as assistants start it: over standard input and output, and over HTTP with a token."""

import asyncio
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

IDLE = Path(__file__).parents[1] / "data" / "lab" / "idle"
COMMAND = [sys.executable, "-m", "necroscope", "mcp", str(IDLE)]


def test_a_client_that_starts_it_lists_recordings_and_incidents() -> None:
    async def ask() -> list[str]:
        async with Client(StdioServerParameters(command=COMMAND[0], args=COMMAND[1:])) as client:
            answers = [
                await client.call_tool(name) for name in ("list_recordings", "list_incidents")
            ]
            return [answer.content[0].text for answer in answers]

    recordings, incidents = asyncio.run(ask())
    assert '"recording": "idle"' in recordings
    assert '"incidents": []' in incidents


@pytest.fixture
def served() -> Iterator[tuple[str, str]]:
    process = subprocess.Popen(
        [*COMMAND, "--listen", "127.0.0.1:0"], stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    address = process.stderr.readline()
    token = process.stderr.readline().rsplit(" ", 1)[-1].strip()
    yield re.findall(r"http://\S+", address)[0], token
    process.terminate()
    process.wait(10)
    process.stderr.close()


def test_http_answers_who_has_the_token_and_nobody_else(served: tuple[str, str]) -> None:
    url, token = served

    async def ask() -> str:
        headers = {"Authorization": f"Bearer {token}"}
        async with (
            httpx.AsyncClient(headers=headers) as http,
            Client(streamable_http_client(url, http_client=http)) as client,
        ):
            answer = await client.call_tool("list_recordings")
            return str(answer.content[0].text)

    assert '"recording": "idle"' in asyncio.run(ask())
    refused = httpx.post(url, json={}, headers={"Authorization": "Bearer wrong"})
    assert refused.status_code == 401
    elsewhere = httpx.post(url, json={}, headers={"Origin": "https://elsewhere.example"})
    assert elsewhere.status_code in (401, 403)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--listen", "here"], "'here' is not a valid address"),
        (["/nowhere/at/all"], "there is no directory /nowhere/at/all"),
        (["--listen", "127.0.0.1:0", "--http-token-file", "/dev/null"], "is too short"),
    ],
)
def test_bad_words_are_an_error_with_a_way_out(words: list[str], said: str) -> None:
    done = subprocess.run(
        [*COMMAND, *words], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 2
    assert said in done.stderr
    assert "hint: " in done.stderr
