"""Annotations of OCI bundles."""

import json
import os
from pathlib import Path

from necroscope.sources.containers import oci_bundle
from necroscope.sources.containers.oci_bundle import SANDBOX, BundleNames, parse, read

ID = "ab" * 32
CONTAINERD = {
    "io.kubernetes.cri.container-name": "train",
    "io.kubernetes.cri.container-type": "container",
    "io.kubernetes.cri.image-name": "registry.example/train:1",
    "io.kubernetes.cri.sandbox-name": "worker-0",
    "io.kubernetes.cri.sandbox-namespace": "ml",
    "io.kubernetes.cri.sandbox-uid": "0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9",
}


def bundle(annotations: object) -> bytes:
    return json.dumps(
        {"ociVersion": "1.1.0", "process": {"env": ["TOKEN=secret"]}, "annotations": annotations}
    ).encode()


def test_containerds_annotations_name_container_and_pod() -> None:
    expected = BundleNames(
        "train",
        "worker-0",
        "ml",
        "0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9",
        "registry.example/train:1",
    )
    assert parse(bundle(CONTAINERD)) == expected


def test_crios_annotations_too() -> None:
    names = parse(
        bundle(
            {
                "io.kubernetes.container.name": "train",
                "io.kubernetes.pod.name": "w",
                "io.kubernetes.pod.namespace": "ml",
            }
        )
    )
    assert names[:3] == ("train", "w", "ml")


def test_crios_sandbox_has_the_labels_that_tell_who_made_the_pod() -> None:
    labels = {"controller-revision-hash": "6f8d9c5b7", "app": "agent", "token": "secret"}
    names = parse(bundle({"io.kubernetes.cri-o.Labels": json.dumps(labels)}))
    assert names.owner_labels == (("controller-revision-hash", "6f8d9c5b7"),)
    for damaged in ("{", "[]", "5"):
        assert parse(bundle({"io.kubernetes.cri-o.Labels": damaged})) == BundleNames()


def test_a_sandbox_is_said_to_be_one() -> None:
    assert (
        parse(bundle(CONTAINERD | {"io.kubernetes.cri.container-type": "sandbox"})).name == SANDBOX
    )


def test_damaged_bundles_say_nothing() -> None:
    for data in (b"", b"[]", b"{}", b'{"annotations": 5}', bundle(None), b"[" * 100_000):
        assert parse(data) == BundleNames()


def test_the_file_of_a_running_container_is_found(tmp_path: Path) -> None:
    file = tmp_path / f"run/containerd/io.containerd.runtime.v2.task/k8s.io/{ID}/config.json"
    file.parent.mkdir(parents=True)
    file.write_bytes(bundle(CONTAINERD))
    assert read(tmp_path, ID).pod == "worker-0"
    assert read(tmp_path, "cd" * 32) == BundleNames()


def test_what_is_no_small_regular_file_is_not_read(tmp_path: Path) -> None:
    folder = tmp_path / f"run/containerd/io.containerd.runtime.v2.task/k8s.io/{ID}"
    folder.mkdir(parents=True)
    os.mkfifo(folder / "config.json")
    assert read(tmp_path, ID) == BundleNames()
    (folder / "config.json").unlink()
    (folder / "config.json").write_bytes(b" " * (oci_bundle.LIMIT_BYTES + 1))
    assert read(tmp_path, ID) == BundleNames()
