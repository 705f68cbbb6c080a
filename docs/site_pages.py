"""What the website adds to docs/: the pages at the root of the tree, and plain names in place of links
to source files, which a website does not have.
"""

import posixpath
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
PROJECT = ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "CODE_OF_CONDUCT.md")
LINK = re.compile(r"\[([^\]]*)\]\((?!https?:|#)([^)#\s]+)(#[^)\s]*)?\)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    for name in PROJECT:
        files.append(File.generated(config, name, abs_src_path=str(ROOT / name)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:  # noqa: ARG001
    """Links as they lead within the site; one that leaves docs/ becomes its text."""
    source = page.file.src_uri
    folder = posixpath.dirname(source if source in PROJECT else f"docs/{source}")

    def led(found: re.Match[str]) -> str:
        text, target, place = found[1], found[2], found[3] or ""
        at = posixpath.normpath(posixpath.join(folder, target))
        inside = at if at in PROJECT else at.removeprefix("docs/")
        if at not in PROJECT and not at.startswith("docs/"):
            return f"{text} (`{at}` in the source tree)" if text != at else f"`{at}`"
        return f"[{text}]({posixpath.relpath(inside, posixpath.dirname(source) or '.')}{place})"

    return LINK.sub(led, markdown)
