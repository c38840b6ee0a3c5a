"""Prints what the frameworks did, as a table; ``--write`` puts it into the documentation.

python -m tests.frameworks.page [--write]
"""

from __future__ import annotations

import json
import sys
from typing import Any, Final

from tests.frameworks.running import PINS, latest
from tests.interop.install import PROJECT

PAGE: Final = PROJECT / "docs" / "reference" / "frameworks.md"
BEGIN: Final = "<!-- measured -->\n"
END: Final = "<!-- end -->\n"
TITLES: Final = {
    "langchain": "LangChain",
    "openai_agents": "OpenAI Agents",
    "pydantic_ai": "Pydantic AI",
}


def table() -> str:
    lines = [
        "| framework | client | the run | steps recorded | 20 calls |",
        "|---|---|---|---|---|",
    ]
    for name, title in TITLES.items():
        found = json.loads(latest(name).read_text(encoding="utf-8"))
        label = f"{title} {PINS[name][0].rpartition('==')[2]}"
        lines += [_row(label, "Holdfast", found["holdfast"])]
        lines += [_row(label, "its own", found["native"])]
    return "\n".join(lines) + "\n"


def _row(label: str, client: str, ended: dict[str, Any]) -> str:
    how = "finished" if ended["finished"] else f"aborted: {ended['error'].partition('. ')[0]}"
    steps = ", ".join(map(str, ended["steps"]))
    return f"| {label} | {client} | {how} | {steps} | {ended['seconds']:.3f} s |"


def main() -> int:
    is_written = "--write" in sys.argv
    if missing := [title for name, title in TITLES.items() if not latest(name).exists()]:
        print(f"No table: {', '.join(missing)} did not run yet.")
        return 1 if is_written else 0
    found = table()
    print(found)
    if is_written:
        text = PAGE.read_text(encoding="utf-8")
        before, _, rest = text.partition(BEGIN)
        after = rest.partition(END)[2]
        PAGE.write_text(before + BEGIN + found + END + after, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
