"""Programs that tests need and no Python package brings: from PATH, or from beside this Python,
where scripts/setup puts some.
"""

import os
import shutil
import sys
from pathlib import Path

import pytest


def program(name: str) -> str | None:
    return shutil.which(
        name,
        path=os.pathsep.join(
            [str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)]
        ),
    )


needs_promtool = pytest.mark.skipif(
    program("promtool") is None, reason="needs promtool, of Debian's package prometheus"
)
needs_prometheus = pytest.mark.skipif(
    program("prometheus") is None, reason="needs prometheus, of Debian's package of that name"
)
needs_kubectl = pytest.mark.skipif(program("kubectl") is None, reason="needs kubectl")
needs_helm = pytest.mark.skipif(
    program("helm") is None, reason="needs helm, of the Python package helm-binary"
)
