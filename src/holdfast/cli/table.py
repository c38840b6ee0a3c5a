"""The table of verbs. Help is printed from it without loading any of them."""


class Verb:
    """Where a verb lives (a module of this package, and the command's name in it), and its line.

    ``takes_server`` says that it is about a server, which may be a command after ``--``. Plain, and
    not a NamedTuple: help should not wait for ``typing``.
    """

    def __init__(
        self, module: str, command: str, summary: str, *, takes_server: bool = True
    ) -> None:
        self.module, self.command, self.summary = module, command, summary
        self.takes_server = takes_server


SECTIONS: dict[str, dict[str, Verb]] = {
    "Look around": {
        "servers": Verb(
            "listing", "servers", "the configured servers; starts none of them", takes_server=False
        ),
        "status": Verb("status", "status", "start all servers, and show which can be used"),
        "tools": Verb("listing", "tools", "the tools of a server, or of all"),
        "describe": Verb("listing", "describe", "one tool, or a server: what it does and takes"),
        "search": Verb("listing", "search", "find tools by words, in all servers"),
        "resources": Verb("listing", "resources", "the resources of a server"),
        "prompts": Verb("listing", "prompts", "the prompts of a server"),
        "skills": Verb("resources", "skills", "the skills of a server"),
        "ping": Verb("listing", "ping", "see whether a server answers"),
        "doctor": Verb("doctor", "doctor", "start a server step by step and say what is wrong"),
    },
    "Use a server": {
        "call": Verb("call", "call", "call a tool"),
        "tasks": Verb("tasks", "tasks", "calls that became tasks: get, wait, cancel, list"),
        "read": Verb("resources", "read", "read a resource"),
        "skill": Verb("resources", "skill", "read a skill, verified"),
        "prompt": Verb("resources", "prompt", "get a prompt"),
        "complete": Verb("resources", "complete", "suggestions for an argument of a prompt"),
        "watch": Verb("watch", "watch", "notifications and log messages, as they come"),
        "shell": Verb("shell", "shell", "a prompt over one kept connection"),
    },
    "Hold it to its word": {
        "codegen": Verb("codegen", "codegen", "write a typed Python module for a server's tools"),
        "lock": Verb("lock", "lock", "write down a server's tools in a lock file"),
        "check": Verb("lock", "check", "compare servers with the lock file"),
    },
    "Call logs": {
        "replay": Verb("logs", "replay", "send the calls of a log again"),
        "run": Verb("logs", "run", "run a stored sequence of calls"),
        "diff": Verb("logs", "diff", "compare two logs", takes_server=False),
        "serve-log": Verb(
            "logs", "serve_log", "answer from a log, as a mock server on stdio", takes_server=False
        ),
    },
    "Set up": {
        "login": Verb("auth", "login", "log in to a server behind a URL"),
        "logout": Verb("auth", "logout", "revoke and delete a login"),
        "auth": Verb("auth", "auth", "who is logged in where", takes_server=False),
        "add": Verb("setup", "add", "add a server to your configuration"),
        "remove": Verb("setup", "remove", "remove a server", takes_server=False),
        "import": Verb(
            "setup", "import_", "copy the servers of other products", takes_server=False
        ),
        "config": Verb(
            "config",
            "config",
            "show, explain and trust configuration",
            takes_server=False,
        ),
        "completion": Verb(
            "completion",
            "completion",
            "install shell completion, or print it",
            takes_server=False,
        ),
        "demo": Verb(
            "setup",
            "demo",
            "see a client at work, against a server that comes with it",
            takes_server=False,
        ),
    },
}

LISTS = ("list", "ls")
"""Other words for ``tools`` with a server, and for ``servers`` without one."""

VERBS: dict[str, Verb] = {name: verb for part in SECTIONS.values() for name, verb in part.items()}

SYNONYMS: dict[str, tuple[str, ...]] = {
    "call": ("exec", "invoke", "use"),
    "describe": ("info", "inspect", "show"),
    "remove": ("delete", "rm", "uninstall"),
    "search": ("find", "grep"),
    "status": ("health", "list-servers"),
    "add": ("install", "new"),
}
"""What people type for a verb; it is suggested."""
