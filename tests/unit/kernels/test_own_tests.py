"""The project's own tests find in a guest what they import here."""

import re

from tests.kernels.image import ROOT
from tests.kernels.sets import own_tests

IMPORT = re.compile(r"^(?:from|import) (tests(?:\.\w+)+)", re.MULTILINE)


def test_all_modules_that_the_tests_import_go_into_the_guest() -> None:
    sent = [
        path
        for name in own_tests.FILES
        for path in ((ROOT / name).rglob("*.py") if (ROOT / name).is_dir() else [ROOT / name])
        if path.suffix == ".py"
    ]
    imported = {name for path in sent for name in IMPORT.findall(path.read_text())}
    assert imported
    assert not {name for name in imported if ROOT / f"{name.replace('.', '/')}.py" not in sent}
