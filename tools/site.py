"""Hooks of the documentation site: the version, the examples with their code, ``llms.txt``."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any, Final

PROJECT: Final = Path(__file__).resolve().parents[1]
EXAMPLE: Final = re.compile(r"\]\(\.\./examples/((?:\w+/)?(\w+))\.py\)")
NOT_PROSE: Final = {"", *"#|-<!:"}
FENCES: Final = re.compile(r"^```.*?^```$", re.M | re.S)


def version() -> str:
    text = (PROJECT / "src" / "holdfast" / "_version.py").read_text(encoding="utf-8")
    (found,) = re.findall(r'__version__ = "(.+)"', text)
    return str(found)


def on_config(config: Any) -> None:
    """Show the version at the foot of every page."""
    config.copyright = f"Holdfast {version()}"


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Put the code of each example on its page."""
    if page.file.src_uri != "examples.md":
        return markdown
    code = [
        f"## {name}.py {{ #{name} }}\n\n```python\n{example(path)}```\n"
        for path, name in EXAMPLE.findall(markdown)
    ]
    return "\n".join([EXAMPLE.sub(r"](#\2)", markdown), *code])


def example(path: str) -> str:
    return (PROJECT / "examples" / f"{path}.py").read_text(encoding="utf-8")


def on_post_build(config: Any) -> None:
    """Write the list of pages for language models, and the pages as Markdown beside it."""
    docs, site = Path(config.docs_dir), Path(config.site_dir)
    for page in docs.rglob("*.md"):
        shutil.copyfile(page, site / page.relative_to(docs))
    (site / "llms.txt").write_text(llms(config.nav, docs), encoding="utf-8")


def llms(nav: list[Any], docs: Path) -> str:
    lines = [f"# Holdfast {version()}", "", f"> {summary(docs / 'index.md')}"]
    for section in nav:
        for title, content in section.items():
            lines += ["", f"## {title}", "", *(entry(docs, page) for page in pages(content))]
    return "\n".join(lines) + "\n"


def pages(content: Any) -> list[str]:
    """Return the files below an entry of the navigation, in its order."""
    match content:
        case str():
            return [content]
        case dict():
            return [page for one in content.values() for page in pages(one)]
    return [page for one in content for page in pages(one)]


def entry(docs: Path, page: str) -> str:
    title = (docs / page).read_text(encoding="utf-8").partition("\n")[0].lstrip("# ")
    said = summary(docs / page)
    return f"- [{title}]({page})" + (f": {said}" if said else "")


def summary(page: Path) -> str:
    """Return the first sentence of a page."""
    text = FENCES.sub("", page.read_text(encoding="utf-8"))
    prose = [part for part in re.split(r"\n\s*\n", text) if part.strip()[:1] not in NOT_PROSE]
    whole = re.sub(r"\[(.*?)\]\(.*?\)", r"\1", " ".join(prose[0].split())) if prose else ""
    return re.split(r"(?<=[.!?]) ", whole)[0].rstrip(":")
