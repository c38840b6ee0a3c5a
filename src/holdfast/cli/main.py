"""The entrance. Help and version are answered here, at the speed of starting Python."""

import os
import sys

SECTIONS: dict[str, dict[str, tuple[str, str]]] = {
    "Look around": {
        "servers": ("listing", "the configured servers; starts none of them"),
        "status": ("status", "start all servers, and show which can be used"),
        "tools": ("listing", "the tools of a server, or of all"),
        "describe": ("listing", "one tool, or a server: what it does and takes"),
        "search": ("listing", "find tools by words, in all servers"),
        "resources": ("listing", "the resources and skills of a server"),
        "prompts": ("listing", "the prompts of a server"),
        "doctor": ("doctor", "start a server step by step and say what is wrong"),
    },
    "Use a server": {
        "call": ("call", "call a tool"),
        "map": ("map", "call a tool for each row of a file"),
        "load": ("load", "make recorded calls again and again, and measure"),
        "read": ("reading", "read a resource or a skill"),
        "prompt": ("reading", "get a prompt"),
        "shell": ("shell", "a prompt over one kept connection"),
        "watch": ("status", "show notifications and log messages, live"),
        "tasks": ("call", "calls that became tasks: get, wait, cancel"),
        "once": ("once", "calls with a key: show, settle, forget"),
    },
    "Set up": {
        "add": ("setup", "add a server to your configuration"),
        "remove": ("setup", "remove a server"),
        "import": ("setup", "copy the servers of other products"),
        "login": ("setup", "log in to a server behind a URL"),
        "logout": ("setup", "revoke and delete a login"),
        "auth": ("setup", "who is logged in where"),
        "config": ("setup", "explain and trust servers"),
        "completion": ("completion", "install shell completion, or print it"),
    },
    "For programs": {
        "serve": ("serve", "servers on stdio or HTTP for hosts, over connections that hold"),
        "daemon": ("daemon", "keep servers running, shared by all your programs"),
        "install": ("install", "put Holdfast before the servers of a host (editor, agent)"),
        "uninstall": ("install", "take it out of a host's file again"),
        "codegen": ("lock", "write a typed Python module for a server's tools"),
        "cli": ("cli", "write a command of its own for one server"),
        "lock": ("lock", "record a server's tools in a lock file"),
        "check": ("lock", "compare servers with the lock file"),
    },
    "See what happened": {
        "log": ("logs", "calls that were recorded: run, replay, diff, serve"),
        "view": ("view", "a page of what crosses the wire, live or from a trace"),
        "demo": ("setup", "see a client at work, against a server that comes with it"),
    },
}
"""All verbs: the module of ``verbs/`` that each is in, and its line. Plain tuples, because help
should not wait for ``typing``."""

FIRST = frozenset(
    (
        *("servers", "status", "tools", "describe", "search", "doctor"),
        *("call", "read", "shell", "add", "login"),
        *("serve", "install", "lock", "view", "demo"),
    )
)
"""The verbs of the first screen, about fifteen; ``help --all`` shows the others too."""

MOVED = {
    "complete": "holdfast prompt NAME --suggest ARGUMENT=TEXT",
    "diff": "holdfast log diff",
    "ping": "holdfast status NAME",
    "replay": "holdfast log replay",
    "run": "holdfast log run",
    "serve-log": "holdfast log serve",
    "skill": "holdfast read SERVER SKILL",
    "skills": "holdfast resources SERVER",
    "auth client-metadata": "OAuth(client_metadata_url=URL).client_metadata(), in Python",
    "config show": "holdfast servers --files",
}
"""Verbs that there were, and what does their work now."""

VERBS: dict[str, tuple[str, str]] = {
    name: verb for part in SECTIONS.values() for name, verb in part.items()
}
WITHOUT_SERVER = frozenset(
    (
        *("servers", "auth", "remove", "import", "config", "completion", "demo"),
        *("install", "uninstall", "daemon", "once"),
        *("log diff", "log serve"),
    )
)
"""Verbs that take no server, and so no command after ``--``."""
SHELL_VERBS = ("call", "describe", "tools", "resources", "read", "prompts", "prompt")
"""Verbs that a line of the shell may begin with."""

USAGE = "Usage: holdfast VERB [WORDS] [OPTIONS] [-- COMMAND ...]"
MOTTO = "The MCP client that holds on."
TARGETS = "A server is a name from the configuration, a URL, or a command:"
EXAMPLES = """\
  holdfast call git.git_log repo_path=. max_count=5
  holdfast tools --url https://example.org/mcp
  holdfast call add a=2 b=3 -- python server.py"""
CODES = """\
Exit codes: 0 ok, 1 the tool or the server returned an error, 2 usage,
3 connection, 4 timeout, 5 authorization or trust, 6 drift,
70 internal error, 130 interrupted."""
MORE = """\
All verbs: holdfast help --all. One of them: holdfast help VERB.
How to name a server, and its options: holdfast help servers."""
GUIDES = """\
The man page: holdfast help --man. A guide for agents: holdfast help --skill."""

VARIABLE = "MCP_SERVER_URL"
"""As `holdfast._core.targets` has it, which need not be loaded to ask whether it is set."""

ROOMY = 76
"""Columns from which on the help needs no wrapping."""


def help_text(columns: int = ROOMY, *, everything: bool = False) -> str:
    """Return the first screen; with ``everything``, all verbs and the exit codes."""
    sections = {
        title: {name: line for name, (_, line) in verbs.items() if everything or name in FIRST}
        for title, verbs in SECTIONS.items()
    }
    width = max(len(name) for verbs in sections.values() for name in verbs)
    parts = [_fold(USAGE, columns, 7), _fold(MOTTO, columns)]
    parts.append(f"{_fold(TARGETS, columns)}\n{_fold_lines(EXAMPLES, columns, 6)}")
    for title, verbs in sections.items():
        lines = [
            _fold(f"  {name:<{width}}  {summary}", columns, width + 4)
            for name, summary in verbs.items()
        ]
        parts.append("\n".join([f"{title}:", *lines]))
    texts = (CODES, MORE, GUIDES) if everything else (MORE,)
    return "\n\n".join([*parts, *(_fold_lines(text, columns) for text in texts)])


def _fold_lines(text: str, columns: int, indent: int = 0) -> str:
    return "\n".join(_fold(line, columns, indent) for line in text.splitlines())


def _fold(text: str, columns: int, indent: int = 0) -> str:
    if columns >= ROOMY:
        return text
    from textwrap import fill

    return fill(text, columns, subsequent_indent=" " * indent)


def columns_of_terminal(descriptor: int = 1) -> int:
    """Return the width of the terminal, at least 20; `ROOMY` where there is none."""
    try:
        columns = os.environ.get("COLUMNS") or os.get_terminal_size(descriptor).columns
        return max(int(columns), 20)
    except (OSError, ValueError):
        return ROOMY


def main(words: list[str] | None = None) -> int:
    """Run one command line; return the exit code."""
    try:
        return _main(sys.argv[1:] if words is None else words)
    except KeyboardInterrupt:  # while modules were loaded; `run` reports it later
        return 130


def _prepare_windows() -> None:
    """Write UTF-8 whatever the code page is, and have the console understand colours."""
    if sys.platform == "win32":
        from io import TextIOWrapper

        from holdfast._core.windows import enable_virtual_terminal

        for stream in (sys.stdin, sys.stdout, sys.stderr):
            errors = "strict" if stream is sys.stdin else "backslashreplace"
            if isinstance(stream, TextIOWrapper):
                stream.reconfigure(encoding="utf-8", errors=errors)
        if not enable_virtual_terminal():
            os.environ.setdefault("NO_COLOR", "1")


def _main(words: list[str]) -> int:
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:  # it was closed when the program started
            mode = "r" if name == "stdin" else "w"
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115
    _prepare_windows()
    if "_HOLDFAST_COMPLETE" in os.environ:
        import signal

        # Ctrl-C at Tab: whatever Python would print lands in the line that is being typed.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        from holdfast.cli.app import root

        root.main([], "holdfast")  # click answers the shell, and exits
    if words in ([], ["--help"], ["-h"], ["help"]):
        return _say(help_text(columns_of_terminal()))
    if words == ["help", "--all"]:
        return _say(help_text(columns_of_terminal(), everything=True))
    if words[0] == "help" and words[1:] in (["--skill"], ["--man"], ["servers"]):
        from holdfast.cli import guide

        return _say(guide.TEXTS[words[1]](), end="")
    if words in (["--version"], ["-V"], ["version"]):
        from holdfast import __version__

        return _say(f"holdfast {__version__}")
    if words[0] == "tools" and "--offline" in words and not os.environ.get(VARIABLE):
        from holdfast.cli.tool_cache import stored_lines

        if (lines := stored_lines(words)) is not None:
            return _say(lines, end="")
    from holdfast.cli.app import run

    return run([*words[1:], "--help"] if words[0] == "help" else words)


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
