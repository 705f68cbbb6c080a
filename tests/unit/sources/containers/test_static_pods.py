"""Which file a kubelet's own pod comes from."""

import os
from pathlib import Path

import pytest
from tests.synthetic_root import write_files

from necroscope.sources.containers.static_pods import StaticPods, file_of, parse_name

MANIFEST = """apiVersion: v1
kind: Pod
metadata:
  labels:
    name: not-this
  name: {}
spec:
  containers:
  - name: etcd
    env: [{{name: TOKEN, value: secret}}]
"""


def test_a_pod_is_found_by_the_name_in_its_manifest(tmp_path: Path) -> None:
    write_files(
        tmp_path,
        {
            "etc/kubernetes/manifests/a.yaml": MANIFEST.format("etcd"),
            "etc/kubernetes/manifests/b.yaml": MANIFEST.format("etcd-events"),
            "etc/kubernetes/manifests/.c.yaml": MANIFEST.format("hidden"),
        },
    )
    files = StaticPods(tmp_path).read()
    assert files.keys() == {"etcd", "etcd-events"}
    assert file_of("etcd-node1", files) == "/etc/kubernetes/manifests/a.yaml"
    assert file_of("etcd-events-node1", files) == "/etc/kubernetes/manifests/b.yaml"
    assert file_of("web-node1", files) is None


def test_the_kubelets_settings_say_where_they_lie_and_a_change_is_seen(tmp_path: Path) -> None:
    file = "opt/pods/a.yaml"
    settings = 'kind: KubeletConfiguration\nstaticPodPath: "/opt/pods/"\n'
    write_files(tmp_path, {"var/lib/kubelet/config.yaml": settings, file: MANIFEST.format("etcd")})
    pods = StaticPods(tmp_path)
    assert pods.read() == {"etcd": "/opt/pods/a.yaml"}
    (tmp_path / file).write_text(MANIFEST.format("other"))
    os.utime(tmp_path / file, ns=(1, 1))
    assert pods.read() == {"other": "/opt/pods/a.yaml"}


@pytest.mark.parametrize(
    ("data", "name"),
    [
        (b'{"kind": "Pod", "metadata": {"name": "etcd"}}', "etcd"),
        (b"metadata:\n  name: 'etcd'\n", "etcd"),
        (b"spec:\n  name: x\n", None),
        (b"metadata:\nspec:\n  name: x\n", None),
        (b"", None),
        (b"\xff" * 100, None),
        (b"metadata:\n" + b"  a\n" * 50_000, None),
    ],
)
def test_only_the_name_of_the_pod_is_taken(data: bytes, name: str | None) -> None:
    assert parse_name(data) == name


def test_what_is_not_a_small_regular_file_is_not_read(tmp_path: Path) -> None:
    folder = tmp_path / "etc/kubernetes/manifests"
    folder.mkdir(parents=True)
    os.mkfifo(folder / "pipe.yaml")
    (folder / "link.yaml").symlink_to("/etc/hostname")
    (folder / "large.yaml").write_bytes(b" " * (1 << 19))
    assert StaticPods(tmp_path).read() == {}
    assert StaticPods(tmp_path / "nowhere").read() == {}
