"""The images that a container daemon holds on this node, by Docker's Engine API, which Podman
serves too: what an image brought along is known before it is started.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from necroscope.errors import SourceUnavailable
from necroscope.sources.daemon_socket import DaemonSocket, is_there
from necroscope.sources.facts.fact import Fact, fact
from necroscope.sources.http_get import http_get

IMAGE_LIMIT: Final = 500
_SOCKETS: Final = ("/run/docker.sock", "/run/podman/podman.sock")
_TIMEOUT_S: Final = 5.0
_ANSWER_BYTES: Final = 8 << 20


def collect(root: Path) -> Iterator[Fact]:
    for path in _SOCKETS:
        if is_there(root, path):
            yield from parse_images(_ask(root, path))


def parse_images(body: bytes) -> Iterator[Fact]:
    """A fact for each name of an image, with the start of its id; one without a name has only
    that.
    """
    try:
        listed: Any = json.loads(body)
        named = {
            str(name): str(image["Id"])
            for image in listed
            for name in image.get("RepoTags") or ()
            if name != "<none>:<none>"
        }
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise SourceUnavailable("the container daemon's list of images has another form") from None
    for name, identity in sorted(named.items())[:IMAGE_LIMIT]:
        yield fact("image", name, identity[:19])


def _ask(root: Path, path: str) -> bytes:
    status, body = http_get(
        lambda: DaemonSocket.connect_unix(root, path, _TIMEOUT_S, _ANSWER_BYTES), "/images/json"
    )
    if status != 200:
        raise SourceUnavailable(f"{path} answers {status} when asked for images")
    return body
