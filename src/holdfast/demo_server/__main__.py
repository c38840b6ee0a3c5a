"""The command line: `python -m holdfast.demo_server [--eras …] [--page-size N] …`."""

from __future__ import annotations

import os
import sys
import time
from typing import NamedTuple

from .server import Server


class Options(NamedTuple):
    eras: str = "both"
    page_size: int | None = None
    slow_start: float = 0.0


def parse_options(arguments: list[str]) -> Options:
    """Reads the options; argparse is loaded only if there are any."""
    if not arguments:
        return Options()
    import argparse

    parser = argparse.ArgumentParser(
        prog="python -m holdfast.demo_server", description="An MCP server over stdio, to try out."
    )
    parser.add_argument(
        "--eras",
        choices=("handshake", "stateless", "both"),
        default="both",
        help="which eras of the protocol to speak (default: both)",
    )
    parser.add_argument(
        "--page-size", type=positive_number, metavar="N", help="give every list in pages of N"
    )
    parser.add_argument(
        "--slow-start",
        type=float,
        default=0.0,
        metavar="SECONDS",
        help="wait before reading the first message",
    )
    found = parser.parse_args(arguments)
    return Options(found.eras, found.page_size, found.slow_start)


def positive_number(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError("must be at least 1")
    return number


def main() -> None:
    options = parse_options(sys.argv[1:])
    try:
        time.sleep(max(0.0, options.slow_start))
        server = Server(sys.stdout.buffer, options.eras, options.page_size)
        server.serve(iter(sys.stdin.buffer.readline, b""))
    except OSError:
        pass  # nobody reads the answers any more
    except KeyboardInterrupt:
        os._exit(130)
    # Not sys.exit: tools that still run in their threads must not hold up the end.
    os._exit(0)


if __name__ == "__main__":
    main()
