"""Opens an address in the browser without its token on a command line, which every user of the
machine can read: through a file that only its owner can, as Jupyter does.
"""

import os
import tempfile
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager
from html import escape
from pathlib import Path
from typing import Final

from necroscope.cli.reader_memory import unconfined

_PAGE: Final = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="referrer" content="no-referrer">
<meta http-equiv="refresh" content="0;url={address}"><title>necroscope</title></head>
<body><p><a href="{address}">necroscope</a></p></body></html>
"""


@contextmanager
def opened_in_browser(address: str) -> Iterator[None]:
    """The file is there as long as the context."""
    with tempfile.TemporaryDirectory(prefix="necroscope-open-") as directory:
        file = Path(directory) / "open.html"
        with os.fdopen(os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w") as out:
            out.write(_PAGE.format(address=escape(address)))
        with unconfined():
            webbrowser.open(file.as_uri())
        yield
