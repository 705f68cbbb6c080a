"""Facts about where the node is and what image it runs: os-release, cloud-init's file, chosen
configuration files; IMDSv2.

Only named keys are taken: user data and credentials stand next to them.
"""

import hashlib
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from necroscope.errors import SourceUnavailable
from necroscope.sources.daemon_socket import DaemonSocket
from necroscope.sources.facts.fact import Fact, fact, read_bytes
from necroscope.sources.http_get import http_get

_RELEASE_KEYS: Final = (
    "ID",
    "VERSION_ID",
    "PRETTY_NAME",
    "IMAGE_ID",
    "IMAGE_VERSION",
    "VARIANT_ID",
    "BUILD_ID",
)
_CLOUD_KEYS: Final = (
    "cloud_name",
    "region",
    "availability_zone",
    "instance_id",
    "platform",
    "subplatform",
)
_META_KEYS: Final = ("instance-type", "instance_type", "ami-id", "local-hostname")
_DOCUMENT_KEYS: Final = (
    "availabilityZone",
    "region",
    "instanceType",
    "imageId",
    "instanceId",
    "architecture",
)
_CONFIG_FILES: Final = (
    "etc/docker/daemon.json",
    "etc/containerd/config.toml",
    "etc/crio/crio.conf",
    "etc/containers/containers.conf",
    "etc/kubernetes/kubelet/kubelet-config.json",
    "var/lib/kubelet/config.yaml",
    "etc/ecs/ecs.config",
    "etc/default/irqbalance",
    "etc/sysconfig/irqbalance",
    "etc/tuned/active_profile",
    "etc/default/grub",
)
_ENVIRONMENT: Final = re.compile(r"NODE_NAME|NECROSCOPE_LABEL_(?P<label>[A-Z0-9_]+)")
_METADATA_ADDRESS: Final = "169.254.169.254"
_METADATA_SECONDS: Final = 2.0
_METADATA_BYTES: Final = 1 << 16


def collect(root: Path) -> Iterator[Fact]:
    yield from parse_release(
        read_bytes(root / "etc/os-release") or read_bytes(root / "usr/lib/os-release") or b""
    )
    yield from parse_instance_data(
        read_bytes(root / "run/cloud-init/instance-data.json", 4 << 20) or b"{}"
    )
    for name in _CONFIG_FILES:
        data = read_bytes(root / name)
        if data is not None:
            yield fact("config_file", f"/{name}", hashlib.sha256(data).hexdigest())
    for name, value in sorted(os.environ.items()):
        match = _ENVIRONMENT.fullmatch(name)
        if match is not None:
            yield (
                fact("label", match["label"].lower(), value)
                if match["label"]
                else fact("environment", name, value)
            )


def parse_release(data: bytes) -> Iterator[Fact]:
    for key, value in re.findall(
        r"^(\w+)=[\"']?(.*?)[\"']?$", data.decode("utf-8", "backslashreplace"), re.MULTILINE
    ):
        if key in _RELEASE_KEYS:
            yield fact("os", key.lower(), value)


def parse_instance_data(data: bytes) -> Iterator[Fact]:
    """cloud-init's instance-data.json: `v1` is the part with one form for all clouds."""
    try:
        document = json.loads(data)
        common, meta = document.get("v1") or {}, (document.get("ds") or {}).get("meta_data") or {}
        pairs = [(key, common.get(key)) for key in _CLOUD_KEYS] + [
            (key.replace("-", "_"), meta.get(key)) for key in _META_KEYS
        ]
    except (ValueError, AttributeError, TypeError, RecursionError):
        return
    for key, value in pairs:
        if isinstance(value, str) and value:
            yield fact("cloud", key, value)


def collect_metadata(address: str = _METADATA_ADDRESS, port: int = 80) -> Iterator[Fact]:
    """The instance identity document by IMDSv2: a token first, so that a forwarded request gets
    nothing.
    """
    seconds = ("X-aws-ec2-metadata-token-ttl-seconds: 60",)
    status, token = _ask(address, port, "/latest/api/token", seconds, "PUT")
    if status != 200 or not re.fullmatch(rb"[\w=+/-]{1,1000}", token):
        raise SourceUnavailable(f"the metadata service gives no token: status {status}")
    header = (f"X-aws-ec2-metadata-token: {token.decode('ascii')}",)
    status, body = _ask(address, port, "/latest/dynamic/instance-identity/document", header, "GET")
    try:
        document: Any = json.loads(body) if status == 200 else {}
        pairs = [(key, document.get(key)) for key in _DOCUMENT_KEYS]
    except (ValueError, AttributeError, RecursionError):
        raise SourceUnavailable("the metadata service's answer is not a document") from None
    for key, value in pairs:
        if isinstance(value, str):
            yield fact(
                "cloud",
                re.sub(r"(?<=[a-z])([A-Z])", lambda match: "_" + match[1].lower(), key),
                value,
            )


def _ask(
    address: str, port: int, target: str, headers: tuple[str, ...], method: str
) -> tuple[int, bytes]:
    return http_get(
        lambda: DaemonSocket.connect_tcp(address, port, _METADATA_SECONDS, _METADATA_BYTES),
        target,
        headers,
        method,
    )
