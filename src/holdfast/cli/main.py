"""The entrance. Help and version are answered here, at the speed of starting Python."""

import os
import sys

from holdfast.cli.table import SECTIONS

USAGE = "Usage: holdfast VERB [WORDS] [OPTIONS] [-- COMMAND ...]"
MOTTO = "The MCP client that holds on."
TARGETS = "A server is a name from the configuration, a URL, or a command:"
EXAMPLES = """\
  holdfast call git.git_log repo_path=. max_count=5
  holdfast tools --url https://example.org/mcp
  holdfast call add a=2 b=3 -- python server.py"""
CODES = """\
Exit codes: 0 ok, 1 the server says no, 2 usage, 3 connection, 4 timeout,
5 authorization or trust, 6 drift, 70 a fault of holdfast, 130 interrupted."""
MORE = """\
'holdfast VERB --help' tells more about a verb, 'holdfast help --man' has it
all as a man page, and 'holdfast help --skill' a guide for agents."""

ROOMY = 76
"""Columns in which nothing needs to be wrapped."""


def help_text(columns: int = ROOMY) -> str:
    """Return the first screen."""
    width = max(len(name) for part in SECTIONS.values() for name in part)
    parts = [_fold(USAGE, columns, 7), _fold(MOTTO, columns)]
    parts.append(f"{_fold(TARGETS, columns)}\n{EXAMPLES}")
    for title, verbs in SECTIONS.items():
        lines = [
            _fold(f"  {name:<{width}}  {verb.summary}", columns, width + 4)
            for name, verb in verbs.items()
        ]
        parts.append("\n".join([f"{title}:", *lines]))
    return "\n\n".join([*parts, f"{_fold(CODES, columns)}\n{_fold(MORE, columns)}"])


def _fold(text: str, columns: int, indent: int = 0) -> str:
    if columns >= ROOMY:
        return text
    from textwrap import fill

    return fill(text, columns, subsequent_indent=" " * indent)


def columns_of_terminal(descriptor: int = 1) -> int:
    """Return the width of the terminal, at least 20; roomy where there is none."""
    try:
        said = os.environ.get("COLUMNS") or os.get_terminal_size(descriptor).columns
        return max(int(said), 20)
    except (OSError, ValueError):
        return ROOMY


def main(words: list[str] | None = None) -> int:
    """Run one command line; return the exit code."""
    words = sys.argv[1:] if words is None else words
    _have_streams()
    if "_HOLDFAST_COMPLETE" in os.environ:
        from holdfast.cli.app import root

        root.main([], "holdfast")  # click answers the shell, and exits
    if words in ([], ["--help"], ["-h"], ["help"]):
        return _say(help_text(columns_of_terminal()))
    if words[0] == "help" and words[1:] in (["--skill"], ["--man"]):
        from holdfast.cli import guide

        return _say(guide.skill() if words[1] == "--skill" else guide.man(), end="")
    if words in (["--version"], ["-V"], ["version"]):
        from holdfast import __version__

        return _say(f"holdfast {__version__}")
    if words[0] == "tools" and "--offline" in words and not os.environ.get("MCP_SERVER_URL"):
        from holdfast.cli.offline import stored_lines

        if (lines := stored_lines(words)) is not None:
            return _say(lines, end="")
    from holdfast.cli.app import run

    return run([*words[1:], "--help"] if words[0] == "help" else words)


def _have_streams() -> None:
    """Open streams that were closed when the program started, which Python has as None."""
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:
            mode = "r" if name == "stdin" else "w"
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115


def _say(text: str, end: str = "\n") -> int:
    try:
        print(text, end=end, flush=True)
    except OSError as error:
        from holdfast.cli.output import Output, abandon
        from holdfast.errors import ValidationError

        code = abandon()
        if isinstance(error, BrokenPipeError):
            return code
        return Output().fail(ValidationError(f"stdout: cannot be written: {error.strerror}"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
