"""Pages, taken apart into their blocks."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent

PROJECT = Path(__file__).resolve().parents[2]
PAGES = sorted([PROJECT / "README.md", *(PROJECT / "docs").rglob("*.md")])

FENCE = re.compile(r"^( *)```(?P<info>[^\n`]*)\n(?P<body>.*?)^\1```$", re.M | re.S)
TITLE = re.compile(r'(?P<kind>\w+) title="(?P<title>[\w.-]+)"')

RUN = ("python", "console")


@dataclass(frozen=True)
class Block:
    """A fenced block: what it is, where it begins, and what stands between it and the last one."""

    info: str
    line: int
    text: str
    between: str

    @property
    def kind(self) -> str:
        return self._titled["kind"] if self._titled else self.info

    @property
    def title(self) -> str | None:
        """The name of the file that the block is, if it is one."""
        return self._titled["title"] if self._titled else None

    @property
    def _titled(self) -> re.Match[str] | None:
        return TITLE.fullmatch(self.info)


def blocks(text: str) -> list[Block]:
    found, end = [], 0
    for match in FENCE.finditer(text):
        line = text.count("\n", 0, match.start("body"))
        between = text[end : match.start()]
        found.append(Block(match["info"].strip(), line, dedent(match["body"]), between))
        end = match.end()
    return found


@dataclass(frozen=True)
class Step:
    """A block that is run, or written to a file, and what the page says that it prints."""

    block: Block
    expected: str | None

    @property
    def is_printed(self) -> bool:
        return self.block.title is None

    @property
    def must_succeed(self) -> bool:
        """Commands without an output to compare: that they work is what the page says of them."""
        return self.block.kind == "console" and self.expected is None


def steps(found: list[Block]) -> list[Step]:
    """What is done to prove a page: all Python, all files, and commands.

    Commands whose output is shown, and those that need nothing but the demo server.
    """
    return [
        Step(block, expected)
        for block, expected in zip(found, _outputs(found), strict=True)
        if block.title
        or block.kind == "python"
        or (block.kind == "console" and (expected or needs_nothing(block.text)))
    ]


def needs_nothing(commands: str) -> bool:
    """Return whether a reader can type these commands in an empty folder, one after the other."""
    lines = [line.removeprefix("$ ") for line in commands.replace("\\\n", "").splitlines()]
    is_whole = all(line.startswith("holdfast ") and "&" not in line for line in lines)
    return is_whole and "holdfast.demo.server" in commands


def _outputs(found: list[Block]) -> list[str | None]:
    """For each block the text that stands right after it."""
    return [
        after.text if after.info == "text" and not after.between.strip() else None
        for after in found[1:]
    ] + [None] * bool(found)


def read(page: Path) -> list[Block]:
    return blocks(page.read_text(encoding="utf-8"))


def name_of(page: Path) -> str:
    return str(page.relative_to(PROJECT))
