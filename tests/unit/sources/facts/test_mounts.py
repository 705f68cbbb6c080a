"""Facts about mounts."""

from necroscope.sources.facts.mounts import parse

MOUNTINFO = b"""\
23 1 259:1 / / rw,relatime shared:1 - ext4 /dev/root rw,discard
30 23 0:26 / /sys rw,nosuid - sysfs sysfs rw
41 23 259:2 / /data rw,noatime - xfs /dev/nvme1n1 rw,attr2
42 23 0:51 / /mnt/nfs rw,relatime - nfs4 10.0.0.1:/export rw,vers=4.1,hard
50 23 0:60 / /var/lib/kubelet/pods/x/volumes/y rw - tmpfs tmpfs rw
51 23 0:61 / /run/containerd/z rw - overlay overlay rw
52 23 0:62 / /run/containerd/zz rw - overlay overlay rw
53 23 0:63 / /run/containerd/zzz rw - overlay overlay rw
60 23 259:1 /p /var/lib/kubelet/pods/x/sub rw - ext4 /dev/root rw
damaged line
61 23 259:1 /p -
"""


def test_types_are_counted_and_mounts_with_data_have_their_options() -> None:
    found = {(kind, name): value for kind, name, value in parse(MOUNTINFO)}
    assert found["mount", "/"] == "ext4 rw,relatime rw,discard"
    assert found["mount", "/data"] == "xfs rw,noatime rw,attr2"
    assert found["mount", "/mnt/nfs"] == "nfs4 rw,relatime rw,vers=4.1,hard"
    assert {name for kind, name in found if kind == "mount"} == {"/", "/data", "/mnt/nfs"}
    assert found["mount_count", "overlay"] == "2 to 3"
    assert found["mount_count", "nfs4"] == "1"


def test_an_empty_file_has_no_facts() -> None:
    assert list(parse(b"")) == []
