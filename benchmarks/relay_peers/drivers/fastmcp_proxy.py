"""FastMCP's proxy on stdio: ``python fastmcp_proxy.py MODE COMMAND…``; ``-`` is its default."""

from __future__ import annotations

import sys

from fastmcp.client.transports import StdioTransport
from fastmcp.server import create_proxy

if __name__ == "__main__":
    mode, command, *words = sys.argv[1:]
    target = StdioTransport(command, words)
    create_proxy(target, mode=None if mode == "-" else mode).run(show_banner=False)
