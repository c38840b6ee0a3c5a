"""The entrance. Help and version are answered here, at the speed of starting Python."""

from __future__ import annotations

import os
import sys

from holdfast.cli.verbs import SECTIONS

USAGE = "Usage: holdfast VERB [WORDS] [OPTIONS] [-- COMMAND ...]"

TARGETS = """\
A server is a name from the configuration, a URL, or a command:
  holdfast call git.git_log repo_path=. max_count=5
  holdfast tools --url https://example.org/mcp
  holdfast call add a=2 b=3 -- python server.py"""

MORE = """\
Exit codes: 0 ok, 1 the server says no, 2 usage, 3 connection, 4 timeout,
5 authorization or trust, 6 drift, 130 interrupted.
'holdfast VERB --help' tells more about a verb."""


def help_text() -> str:
    """The first screen."""
    width = max(len(name) for part in SECTIONS.values() for name in part)
    parts = [f"{USAGE}\n\nThe MCP client that holds on.", TARGETS]
    for title, verbs in SECTIONS.items():
        lines = [f"  {name:<{width}}  {verb.summary}" for name, verb in verbs.items()]
        parts.append("\n".join([f"{title}:", *lines]))
    return "\n\n".join([*parts, MORE])


def main(words: list[str] | None = None) -> int:
    """Run one command line; the result is the exit code."""
    words = sys.argv[1:] if words is None else words
    if "_HOLDFAST_COMPLETE" in os.environ:
        from holdfast.cli.app import root

        root.main([], "holdfast")  # click answers the shell, and exits
    if words in ([], ["--help"], ["-h"], ["help"]):
        return _say(help_text())
    if words in (["--version"], ["-V"]):
        from holdfast import __version__

        return _say(f"holdfast {__version__}")
    from holdfast.cli.app import run

    return run(words)


def _say(text: str) -> int:
    try:
        print(text, flush=True)
    except BrokenPipeError:
        from holdfast.cli.output import abandon

        return abandon()
    return 0


if __name__ == "__main__":
    sys.exit(main())
