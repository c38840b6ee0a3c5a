"""The servers: what is installed, how it is started, and what is known of each.

Everything here is checked by a test against the server itself, and printed in
docs/reference/real-servers.md.
"""

from __future__ import annotations

import json
import subprocess
import threading
from base64 import b64encode
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from tests.interop.install import Source

SCRIPTS: Final = Path(__file__).with_name("servers")

ALL: Final = ("2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
HANDSHAKE: Final = ALL[1:]


@dataclass(frozen=True)
class Question:
    """A tool call, and what its answer must contain."""

    tool: str
    arguments: dict[str, Any]
    answer: str


@dataclass(frozen=True)
class Oddity:
    """What is peculiar to a server, and the test that meets it."""

    text: str
    proof: str


Command = Callable[[Path, Path], list[str]]
"""From the folder of the installation and a folder to work in."""

Way: TypeAlias = Literal["stdio", "http", "sse"]
"""``http`` is Streamable HTTP, ``sse`` is HTTP+SSE of 2024-11-05."""

WAYS: Final[tuple[Way, ...]] = ("stdio", "http", "sse")


@dataclass(frozen=True)
class Door:
    """How a server is started so that it listens at ``$PORT``, and where it is found there."""

    command: Command
    path: str
    quick: bool = False
    survives_cancel: bool = True


@dataclass(frozen=True)
class Server:
    """A server that somebody else wrote, or a script on a library that somebody else wrote."""

    name: str
    package: str
    version: str
    built_with: str
    source: Source
    pins: tuple[str, ...]
    command: Command
    question: Callable[[int, Path], Question]
    """A question whose answer is known; the number makes each a different one."""
    offers: tuple[str, ...]
    speaks: tuple[str, ...] = ALL
    """The revisions that it takes, the one agreed on without a pin first."""
    unknown_tool: int | None = None
    """The error code for an unknown tool; None: a result with ``is_error``."""
    launched: bool = False
    """Whether the command only launches the program that is the server."""
    survives_cancel: bool = True
    """Whether it always lives on when told that a call was cancelled."""
    prepare: Callable[[Path], None] = field(default=lambda _: None)
    env: Callable[[Path], dict[str, str]] = field(default=lambda _: {})
    oddities: tuple[Oddity, ...] = ()
    quick: bool = False
    """Small enough to be tried by ``make interop``; the others want ``SERVERS=all``."""
    doors: dict[Way, Door] = field(default_factory=dict, hash=False)
    """The ways in besides stdio, each with a ``quick`` of its own."""

    @property
    def ways(self) -> tuple[Way, ...]:
        return ("stdio", *self.doors)

    def is_quick(self, way: Way) -> bool:
        return self.quick if way == "stdio" else self.doors[way].quick

    def outlives_cancel(self, way: Way) -> bool:
        return self.survives_cancel if way == "stdio" else self.doors[way].survives_cancel

    def eras(self, way: Way) -> tuple[str, ...]:
        """One revision of each era that it speaks; the old transport has the old era only."""
        newest = self.speaks[0]
        if newest in HANDSHAKE:
            return (newest,)
        return HANDSHAKE[:1] if way == "sse" else (newest, HANDSHAKE[0])

    def __str__(self) -> str:
        return self.name


# How they are started


def in_venv(program: str, *arguments: str) -> Command:
    return lambda folder, _: [str(folder / "bin" / program), *arguments]


def in_npm(program: str, *arguments: str) -> Command:
    return lambda folder, _: [str(folder / "node_modules" / ".bin" / program), *arguments]


def script(name: str, *arguments: str) -> Command:
    return lambda folder, _: [str(folder / "bin" / "python"), str(SCRIPTS / name), *arguments]


def doors(
    command: Callable[[str], Command],
    http: str,
    *,
    quick: tuple[Way, ...] = (),
    survives_cancel: bool = True,
) -> dict[Way, Door]:
    """Both ways in; ``http`` is the server's own word for the first."""
    return {
        "http": Door(command(http), "/mcp", "http" in quick, survives_cancel),
        "sse": Door(command("sse"), "/sse", "sse" in quick, survives_cancel),
    }


# What they are asked


def sum_of(number: int, _: Path) -> Question:
    answer = f"The sum of {number} and 1 is {number + 1}."
    return Question("get-sum", {"a": number, "b": 1}, answer)


def addition(number: int, _: Path) -> Question:
    return Question("add", {"a": number, "b": 1}, str(number + 1))


def tokyo(number: int, _: Path) -> Question:
    """Tokyo is nine hours ahead of UTC all year."""
    hour, minute = number % 24, number % 60
    arguments = {
        "source_timezone": "UTC",
        "time": f"{hour:02}:{minute:02}",
        "target_timezone": "Asia/Tokyo",
    }
    return Question("convert_time", arguments, f"T{(hour + 9) % 24:02}:{minute:02}:00+09:00")


def note(number: int, work: Path) -> Question:
    path = str(work / f"note-{number % 10}.txt")
    return Question("read_text_file", {"path": path}, f"note {number % 10}")


def node(number: int, _: Path) -> Question:
    return Question("open_nodes", {"names": [f"node-{number % 10}"]}, f"fact {number % 10}")


def tag(number: int, work: Path) -> Question:
    arguments = {"repo_path": str(work), "revision": f"v{number % 3}"}
    return Question("git_show", arguments, f"change {number % 3}")


def configuration(_number: int, _work: Path) -> Question:
    return Question("configuration_view", {}, "http://127.0.0.1:9")


def page(number: int, work: Path) -> Question:
    port = (work / "port").read_text(encoding="utf-8")
    return Question("fetch", {"url": f"http://127.0.0.1:{port}/{number}"}, f"page /{number}.")


def product(number: int, _: Path) -> Question:
    return Question("calculate", {"expression": f"{number} * 1000 + 1"}, str(number * 1000 + 1))


def heading(number: int, _: Path) -> Question:
    html = f"<html><body><h1>Page {number}</h1></body></html>"
    uri = f"data:text/html;base64,{b64encode(html.encode()).decode()}"
    return Question("convert_to_markdown", {"uri": uri}, f"# Page {number}")


def thought(number: int, _: Path) -> Question:
    arguments = {
        "thought": f"what comes after {number}?",
        "thoughtNumber": number + 1,
        "totalThoughts": 1000,
        "nextThoughtNeeded": True,
    }
    return Question("sequentialthinking", arguments, f'"thoughtNumber": {number + 1},')


def greeting(number: int, _: Path) -> Question:
    return Question("echo", {"message": f"hello {number}."}, f"hello {number}.")


def workbook(number: int, work: Path) -> Question:
    path = str(work / f"book-{number}.xlsx")
    return Question("create_workbook", {"path": path, "overwrite": True}, f"book-{number}.xlsx")


# What they find


def write_notes(work: Path) -> None:
    for number in range(10):
        (work / f"note-{number}.txt").write_text(f"note {number}\n", encoding="utf-8")


def write_nodes(work: Path) -> None:
    nodes = (
        {
            "type": "entity",
            "name": f"node-{number}",
            "entityType": "number",
            "observations": [f"fact {number}"],
        }
        for number in range(10)
    )
    lines = "".join(json.dumps(node) + "\n" for node in nodes)
    (work / "memory.jsonl").write_text(lines, encoding="utf-8")


def make_repository(work: Path) -> None:
    def git(*words: str) -> None:
        who = ["-c", "user.name=Somebody", "-c", "user.email=somebody@example.org"]
        safe = ["-c", "commit.gpgsign=false", "-c", "core.hooksPath=/dev/null"]
        subprocess.run(["git", *who, *safe, *words], cwd=work, check=True, capture_output=True)

    git("init", "--quiet", "--initial-branch=main")
    git("config", "user.name", "Somebody")
    git("config", "user.email", "somebody@example.org")
    git("config", "commit.gpgsign", "false")
    for number in range(3):
        (work / "file.txt").write_text(f"{number}\n", encoding="utf-8")
        git("add", "file.txt")
        git("commit", "--quiet", "--message", f"change {number}")
        git("tag", f"v{number}")


KUBECONFIG: Final = {
    "apiVersion": "v1",
    "kind": "Config",
    "current-context": "none",
    "clusters": [{"name": "none", "cluster": {"server": "http://127.0.0.1:9"}}],
    "contexts": [{"name": "none", "context": {"cluster": "none", "user": "none"}}],
    "users": [{"name": "none", "user": {}}],
}
"""A cluster that is not there."""


def write_kubeconfig(work: Path) -> None:
    (work / "kubeconfig").write_text(json.dumps(KUBECONFIG), encoding="utf-8")


class Page(BaseHTTPRequestHandler):
    """Every page says where it is."""

    def do_GET(self) -> None:
        text = f"page {self.path}.".encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/plain")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_: object) -> None:
        """Nobody reads it."""


class Site(ThreadingHTTPServer):
    """Pages to be fetched without leaving the machine."""

    request_queue_size = 256


def serve_pages(work: Path) -> None:
    """For as long as the tests run; the port is written down."""
    site = Site(("127.0.0.1", 0), Page)
    threading.Thread(target=site.serve_forever, daemon=True).start()
    (work / "port").write_text(str(site.server_port), encoding="utf-8")


# The list

EVERYTHING = Server(
    name="everything",
    package="@modelcontextprotocol/server-everything",
    version="2026.8.31",
    built_with="TypeScript SDK 1",
    source="npm",
    pins=("@modelcontextprotocol/server-everything@2026.8.31",),
    command=in_npm("mcp-server-everything", "stdio"),
    question=sum_of,
    offers=("tools", "resources", "prompts", "completions", "logging"),
    speaks=HANDSHAKE,
    oddities=(
        Oddity(
            "offers more tools to a client that declares more, and announces each of them",
            "test_more_tools_are_offered_to_a_client_that_declares_more",
        ),
        Oddity(
            "goes on working, and telling its progress, after a call was cancelled",
            "test_the_progress_of_a_call_that_was_cancelled_is_not_delivered",
        ),
        Oddity(
            "ignores the end of its input while it simulates updates, and has to be terminated",
            "test_it_is_ended_though_it_ignores_the_end_of_its_input",
        ),
    ),
    quick=True,
    doors=doors(
        lambda how: in_npm("mcp-server-everything", how), "streamableHttp", quick=("http", "sse")
    ),
)

FILESYSTEM = Server(
    name="filesystem",
    package="@modelcontextprotocol/server-filesystem",
    version="2026.8.31",
    built_with="TypeScript SDK 1",
    source="npm",
    pins=("@modelcontextprotocol/server-filesystem@2026.8.31",),
    command=lambda folder, work: [
        str(folder / "node_modules" / ".bin" / "mcp-server-filesystem"),
        str(work),
    ],
    question=note,
    offers=("tools",),
    speaks=HANDSHAKE,
    prepare=write_notes,
    oddities=(
        Oddity(
            "sends a file of any size as one line, twice: as text and as structured content",
            "test_a_big_file_comes_as_one_line",
        ),
        Oddity(
            "lets the client's roots take the place of its own arguments",
            "test_roots_take_the_place_of_the_arguments",
        ),
    ),
)

MEMORY = Server(
    name="memory",
    package="@modelcontextprotocol/server-memory",
    version="2026.8.31",
    built_with="TypeScript SDK 1",
    source="npm",
    pins=("@modelcontextprotocol/server-memory@2026.8.31",),
    command=in_npm("mcp-server-memory"),
    question=node,
    offers=("tools", "resources"),
    speaks=HANDSHAKE,
    prepare=write_nodes,
    env=lambda work: {"MEMORY_FILE_PATH": str(work / "memory.jsonl")},
)

TIME = Server(
    name="time",
    package="mcp-server-time",
    version="2026.10.19",
    built_with="Python SDK 2",
    source="pypi",
    pins=("mcp-server-time==2026.10.19", "mcp==2.3.0", "pydantic==2.14.3"),
    command=in_venv("mcp-server-time", "--local-timezone=UTC"),
    question=tokyo,
    offers=("tools", "resources", "prompts"),
    unknown_tool=-32602,
    oddities=(
        Oddity(
            "declares resources and prompts, and has none",
            "test_what_is_declared_may_be_empty",
        ),
    ),
    quick=True,
)

TIME_1_9 = Server(
    name="time-1.9",
    package="mcp-server-time",
    version="2025.7.1",
    built_with="Python SDK 1.9",
    source="pypi",
    pins=("mcp-server-time==2025.7.1", "mcp==1.9.4", "pydantic==2.12.5"),
    command=in_venv("mcp-server-time", "--local-timezone=UTC"),
    question=tokyo,
    offers=("tools",),
    speaks=("2025-03-26", "2024-11-05"),
    oddities=(
        Oddity(
            "answers the probe with -32602 and a long traceback on stderr",
            "test_a_traceback_on_stderr_does_no_harm",
        ),
        Oddity(
            "may die of `notifications/cancelled` that crosses its answer",
            "test_calls_that_were_given_up_do_not_disturb_the_next",
        ),
    ),
    survives_cancel=False,
)

TIME_1_0 = Server(
    name="time-1.0",
    package="mcp-server-time",
    version="0.6.2",
    built_with="Python SDK 1.0",
    source="pypi",
    pins=("mcp-server-time==0.6.2", "mcp==1.0.0", "pydantic==2.14.3"),
    command=in_venv("mcp-server-time", "--local-timezone=UTC"),
    question=tokyo,
    offers=("tools",),
    speaks=("2024-11-05",),
    oddities=(
        Oddity(
            "says nothing to the probe and dies at the next message: it is started twice, "
            "the first time",
            "test_a_server_that_dies_of_the_probe_is_started_again_at_once",
        ),
        Oddity(
            "dies of `notifications/cancelled` as well",
            "test_calls_that_were_given_up_do_not_disturb_the_next",
        ),
    ),
    survives_cancel=False,
    quick=True,
)

GIT = Server(
    name="git",
    package="mcp-server-git",
    version="2026.10.19",
    built_with="Python SDK 2",
    source="pypi",
    pins=("mcp-server-git==2026.10.19", "mcp==2.3.0", "pydantic==2.14.3"),
    command=in_venv("mcp-server-git"),
    question=tag,
    offers=("tools", "resources", "prompts"),
    unknown_tool=-32602,
    prepare=make_repository,
    oddities=(
        Oddity(
            "may keep git processes running after many calls at once, until it ends itself",
            "test_the_processes_that_it_gathers_end_with_it",
        ),
    ),
)

KUBERNETES = Server(
    name="kubernetes",
    package="kubernetes-mcp-server",
    version="0.0.67",
    built_with="Go SDK",
    source="npm",
    pins=("kubernetes-mcp-server@0.0.67",),
    command=lambda folder, work: [
        str(folder / "node_modules" / ".bin" / "kubernetes-mcp-server"),
        "--kubeconfig",
        str(work / "kubeconfig"),
    ],
    question=configuration,
    offers=("tools", "resources", "prompts", "logging"),
    unknown_tool=-32602,
    prepare=write_kubeconfig,
    launched=True,
    oddities=(
        Oddity(
            "is a native program behind a launcher, which can die and leave it behind",
            "test_a_launcher_that_dies_leaves_no_native_program_behind",
        ),
    ),
    quick=True,
)

FETCH = Server(
    name="fetch",
    package="mcp-server-fetch",
    version="2026.10.24",
    built_with="Python SDK 2",
    source="pypi",
    pins=("mcp-server-fetch==2026.10.24", "mcp==2.3.0", "pydantic==2.14.3"),
    command=in_venv("mcp-server-fetch", "--ignore-robots-txt", "--allow-private-ips"),
    question=page,
    offers=("tools", "resources", "prompts"),
    unknown_tool=-32602,
    prepare=serve_pages,
)

CALCULATOR = Server(
    name="calculator",
    package="mcp-server-calculator",
    version="0.2.1",
    built_with="Python SDK 1",
    source="pypi",
    pins=("mcp-server-calculator==0.2.1", "mcp==1.30.0", "pydantic==2.14.3"),
    command=in_venv("mcp-server-calculator"),
    question=product,
    offers=("tools", "resources", "prompts"),
    speaks=HANDSHAKE,
)

MARKITDOWN = Server(
    name="markitdown",
    package="markitdown-mcp",
    version="0.0.1a7",
    built_with="Python SDK 2",
    source="pypi",
    pins=("markitdown-mcp==0.0.1a7", "markitdown==0.1.8", "mcp==2.3.0", "pydantic==2.14.3"),
    command=in_venv("markitdown-mcp"),
    question=heading,
    offers=("tools", "resources", "prompts"),
)

EXCEL = Server(
    name="excel",
    package="excel-mcp-server",
    version="2.2.2",
    built_with="Python SDK 2",
    source="pypi",
    pins=("excel-mcp-server==2.2.2", "mcp==2.3.0", "pydantic==2.14.3"),
    command=in_venv("excel-mcp-server", "stdio"),
    question=workbook,
    offers=("tools", "resources", "prompts"),
)

SEQUENTIAL_THINKING = Server(
    name="sequential-thinking",
    package="@modelcontextprotocol/server-sequential-thinking",
    version="2026.8.31",
    built_with="TypeScript SDK 1",
    source="npm",
    pins=("@modelcontextprotocol/server-sequential-thinking@2026.8.31",),
    command=in_npm("mcp-server-sequential-thinking"),
    question=thought,
    offers=("tools",),
    speaks=HANDSHAKE,
)

HELLO_WORLD = Server(
    name="hello-world",
    package="mcp-hello-world",
    version="1.1.2",
    built_with="TypeScript SDK 1",
    source="npm",
    pins=("mcp-hello-world@1.1.2", "@modelcontextprotocol/sdk@1.32.2"),
    command=in_npm("mcp-hello-world"),
    question=greeting,
    offers=("tools", "resources", "prompts"),
    speaks=HANDSHAKE,
)

TYPESCRIPT_2 = Server(
    name="typescript-sdk-2",
    package="@modelcontextprotocol/server",
    version="2.4.0",
    built_with="TypeScript SDK 2",
    source="npm",
    pins=("@modelcontextprotocol/server@2.4.0",),
    command=lambda folder, _: ["node", str(SCRIPTS / "typescript_sdk_2.mjs"), str(folder)],
    question=addition,
    offers=("tools", "resources", "prompts", "logging"),
    unknown_tool=-32602,
    quick=True,
)

PYTHON_1 = Server(
    name="python-sdk-1",
    package="mcp",
    version="1.30.0",
    built_with="Python SDK 1",
    source="pypi",
    pins=("mcp==1.30.0", "pydantic==2.14.3"),
    command=script("python_sdk_1.py"),
    question=addition,
    offers=("tools", "resources", "prompts", "completions"),
    speaks=HANDSHAKE,
    oddities=(
        Oddity(
            "says that there is no such resource with error code 0",
            "test_a_resource_that_is_not_there_is_refused",
        ),
        Oddity(
            "over HTTP may end the session at `notifications/cancelled`, with the next call on it",
            "test_calls_that_were_given_up_do_not_disturb_the_next",
        ),
    ),
    doors=doors(
        lambda how: script("python_sdk_1.py", how), "streamable-http", survives_cancel=False
    ),
)

PYTHON_2 = Server(
    name="python-sdk-2",
    package="mcp",
    version="2.3.0",
    built_with="Python SDK 2",
    source="pypi",
    pins=("mcp==2.3.0", "pydantic==2.14.3"),
    command=script("python_sdk_2.py"),
    question=addition,
    offers=("tools", "resources", "prompts", "completions"),
    doors=doors(lambda how: script("python_sdk_2.py", how), "streamable-http", quick=("http",)),
)

FASTMCP_2 = Server(
    name="fastmcp-2",
    package="fastmcp",
    version="2.14.7",
    built_with="FastMCP 2",
    source="pypi",
    pins=("fastmcp==2.14.7", "mcp==1.30.0", "pydantic==2.14.3"),
    command=script("fastmcp_server.py"),
    question=addition,
    offers=("tools", "resources", "prompts"),
    speaks=HANDSHAKE,
    oddities=(
        Oddity(
            "says that there is no such resource with error code 0",
            "test_a_resource_that_is_not_there_is_refused",
        ),
        Oddity(
            "over HTTP may end the session at `notifications/cancelled`, with the next call on it",
            "test_calls_that_were_given_up_do_not_disturb_the_next",
        ),
    ),
    doors=doors(lambda how: script("fastmcp_server.py", how), "http", survives_cancel=False),
)

FASTMCP_3 = Server(
    name="fastmcp-3",
    package="fastmcp",
    version="3.4.10",
    built_with="FastMCP 3",
    source="pypi",
    pins=("fastmcp==3.4.10", "mcp==1.30.0", "pydantic==2.14.3"),
    command=script("fastmcp_server.py"),
    question=addition,
    offers=("tools", "resources", "prompts"),
    speaks=HANDSHAKE,
)
"""For logins alone: its other parts are those of its neighbours."""

FASTMCP_4 = Server(
    name="fastmcp-4",
    package="fastmcp",
    version="4.1.2",
    built_with="FastMCP 4",
    source="pypi",
    pins=("fastmcp==4.1.2", "mcp==2.3.0", "pydantic==2.14.3"),
    command=script("fastmcp_server.py"),
    question=addition,
    offers=("tools", "resources", "prompts", "logging"),
    doors=doors(lambda how: script("fastmcp_server.py", how), "http"),
)

SERVERS: Final = (
    EVERYTHING,
    FILESYSTEM,
    MEMORY,
    TIME,
    TIME_1_9,
    TIME_1_0,
    GIT,
    KUBERNETES,
    FETCH,
    CALCULATOR,
    MARKITDOWN,
    EXCEL,
    SEQUENTIAL_THINKING,
    HELLO_WORLD,
    TYPESCRIPT_2,
    PYTHON_1,
    PYTHON_2,
    FASTMCP_2,
    FASTMCP_4,
)

WORKSHOPS: Final = (TYPESCRIPT_2, PYTHON_1, PYTHON_2, FASTMCP_2, FASTMCP_4)
"""Scripts of ours with the same tools, each on a library of somebody else's."""
