"""Hooks of the documentation site: version, examples with code, measured tables, ``llms.txt``."""

from __future__ import annotations

import re
import shutil
import sys
from html import escape
from pathlib import Path
from typing import Any, Final

PROJECT: Final = Path(__file__).resolve().parents[1]
EXAMPLE: Final = re.compile(r"\]\(\.\./examples/((?:\w+/)?(\w+))\.py\)")
HIDDEN: Final = {
    "index.md": ["navigation", "toc"],
    "how-to/index.md": ["toc"],
    "evidence.md": ["toc"],
}
"""Sidebars that a page does without, to be wider."""
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
    """Put the code of each example on its page, and what was measured where it is asked for."""
    name = page.file.src_uri
    page.meta["hide"] = HIDDEN.get(name, [])
    if name in ("index.md", "evidence.md"):
        for mark, text in (measured() | evidence()).items():
            markdown = markdown.replace(f"<!-- {mark} -->", text)
    if name != "examples.md":
        return markdown
    code = [
        f"## {name}.py {{ #{name} }}\n\n```python\n{example(path)}```\n"
        for path, name in EXAMPLE.findall(markdown)
    ]
    return "\n".join([EXAMPLE.sub(r"](#\2)", markdown), *code])


def measured() -> dict[str, str]:
    """Return what pages show of the last comparison with other clients."""
    sys.path.insert(0, str(PROJECT))
    from benchmarks.peers import faults, report, results
    from benchmarks.peers.clients import OURS

    kept = results.read()
    clients, tried = report.present(kept), report.tried(kept)
    survived = {
        client.name: [
            not faults.shortcomings(fault, kept.faults[fault.key][client.name]) for fault in tried
        ]
        for client in clients
    }
    counts = [sum(survived[client.name]) for client in clients if client is not OURS]
    return {
        "scores": report.scores(kept),
        "faults-count": str(len(tried)),
        "faults-ours": str(sum(survived[OURS.name])),
        "faults-others": f"{min(counts)} to {max(counts)}",
        "faults": fault_table([fault.title for fault in tried], clients, survived),
        "lane": lane(kept.faults["dies"][OURS.name]),
    }


def evidence() -> dict[str, str]:
    from tools.evidence import figures

    return figures()


def fault_table(titles: list[str], clients: list[Any], survived: dict[str, list[bool]]) -> str:
    """Return the small table of the front page: a mark for each fault and client."""
    head = "".join(f"<th>{escape(SHORT.get(each.title, each.title))}</th>" for each in clients)
    rows = []
    for at, title in enumerate(titles):
        marks = "".join(MARKS[survived[each.name][at]] for each in clients)
        rows.append(f"<tr><td>{escape(capital(FEWER.get(title, title)))}</td>{marks}</tr>")
    sums = "".join(f"<td>{sum(survived[each.name])}</td>" for each in clients)
    foot = f"<tfoot><tr><td>survived</td>{sums}</tr></tfoot>"
    body = "".join(rows)
    head = f"<thead><tr><th>What goes wrong</th>{head}</tr></thead>"
    return f'<table class="faults">{head}<tbody>{body}</tbody>{foot}</table>'


def lane(death: Any) -> str:
    """Return the picture of a server that was killed during a call, with the times measured."""
    ends, works = f"{death.seconds * 1000:.0f} ms", f"{death.next_after:.1f} s"
    text = (PROJECT / "tools" / "theme" / "lane.html").read_text(encoding="utf-8")
    return text.replace("{ends}", ends).replace("{works}", works)


def capital(title: str) -> str:
    return title[:1].upper() + title[1:]


SHORT: Final = {"Python SDK 2": "SDK 2", "Python SDK 1": "SDK 1", "TypeScript": "TS"}
FEWER: Final = {
    "the server never answers; the call has 3 s": "no answer; the call has 3 s",
    "the server stops reading; the call has 3 s": "the server stops reading",
    "the server never answers, and no time was set": "no answer, and no time was set",
    "another task closes the client during a call": "another task closes the client",
    "the server ignores the end of its input and SIGTERM": "the server ignores SIGTERM",
    "the client's process is killed, and the server ignores the end of its input": (
        "the client's process is killed"
    ),
    "HTTP: the session has expired (404)": "HTTP: the session has expired",
    "HTTP: the connection is cut in the middle of a call": "HTTP: cut in the middle of a call",
    "HTTP: the server never answers; the call has 3 s": "HTTP: no answer; the call has 3 s",
}
"""Titles of faults in the words that fit the front page; the page about peers has them whole."""
MARKS: Final = {
    True: '<td class="yes"><span title="survived">✓</span></td>',
    False: '<td class="no"><span title="not survived">✗</span></td>',
}


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
    written = sorted(str(path.relative_to(docs)) for path in docs.rglob("*.md"))
    rest = [page for page in written if page not in pages(nav)]
    lines += ["", "## For those who change Holdfast", "", *(entry(docs, page) for page in rest)]
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
    title = re.findall(r"^# (.+)", (docs / page).read_text(encoding="utf-8"), re.M)[0]
    said = summary(docs / page)
    return f"- [{title}]({page})" + (f": {said}" if said else "")


def summary(page: Path) -> str:
    """Return the first sentence of a page."""
    text = FENCES.sub("", page.read_text(encoding="utf-8"))
    prose = [part for part in re.split(r"\n\s*\n", text) if part.strip()[:1] not in NOT_PROSE]
    whole = re.sub(r"\[(.*?)\]\(.*?\)", r"\1", " ".join(prose[0].split())) if prose else ""
    return re.split(r"(?<=[.!?]) ", whole)[0].rstrip(":")
