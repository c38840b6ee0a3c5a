"""The protocol revisions, and the constants that belong to one of them.

Imports nothing but the standard library: a server that starts often loads only this.
"""

from __future__ import annotations

from typing import Final

STATELESS: Final = ("2026-07-28",)
HANDSHAKE: Final = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
VERSIONS: Final = STATELESS + HANDSHAKE
"""Every revision we speak, newest first."""

BATCHING: Final = "2025-03-26"
"""The only revision with JSON-RPC batches (added in 2025-03-26, removed in 2025-06-18)."""

CORE_TASKS: Final = "2025-11-25"
"""The only revision with tasks in its core; later ones have them as an extension."""

HEADER_MISMATCH: Final = -32020
MISSING_CAPABILITY: Final = -32021
UNSUPPORTED_VERSION: Final = -32022
MODERN_ERRORS: Final = (HEADER_MISMATCH, MISSING_CAPABILITY, UNSUPPORTED_VERSION)
"""Errors that identify a server of the stateless revisions (2026-07-28 basic/versioning)."""

PREFIX: Final = "io.modelcontextprotocol/"
PROTOCOL_VERSION: Final = PREFIX + "protocolVersion"
CLIENT_INFO: Final = PREFIX + "clientInfo"
CLIENT_CAPABILITIES: Final = PREFIX + "clientCapabilities"
LOG_LEVEL: Final = PREFIX + "logLevel"
SUBSCRIPTION: Final = PREFIX + "subscriptionId"
SERVER_INFO: Final = PREFIX + "serverInfo"
TASKS: Final = PREFIX + "tasks"
"""The identifier of the tasks extension."""
SKILLS: Final = PREFIX + "skills"
"""The identifier of the skills extension."""
