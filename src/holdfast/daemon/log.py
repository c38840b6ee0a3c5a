"""The log of the daemon: one file of this user's, bounded, without secrets."""

from __future__ import annotations

import logging
import os
from logging.handlers import RotatingFileHandler
from typing import Final

from holdfast._core.files import make_private_folder, open_for_append, xdg_path
from holdfast._core.redact.redactor import redact_text

LOG_NAME: Final = "daemon.log"
MOST_BYTES: Final = 1024 * 1024
"""Of the file; there is one older one of the same size."""
LONGEST_LINE: Final = 2000
"""Characters of a record: servers decide what is in them."""


def log_path() -> str:
    """Return the path of the log."""
    return os.path.join(xdg_path("state"), "holdfast", LOG_NAME)


class RedactingFormatter(logging.Formatter):
    """Formats a record as one line without secrets."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        text = redact_text(super().format(record)).replace("\n", "\n    ")
        return text if len(text) <= LONGEST_LINE else f"{text[:LONGEST_LINE]}…"


class PrivateFileHandler(RotatingFileHandler):
    """Writes to a file that nobody else can read."""

    def _open(self) -> object:  # type: ignore[override]
        return open(open_for_append(self.baseFilename), "a", encoding="utf-8", errors="replace")


def log_to_file(*, is_shown: bool = False) -> None:
    """Write what is logged to the file; show it on stderr as well if somebody looks."""
    path = log_path()
    make_private_folder(os.path.dirname(path))
    handlers: list[logging.Handler] = [
        PrivateFileHandler(path, maxBytes=MOST_BYTES, backupCount=1, delay=True)
    ]
    if is_shown:
        handlers.append(logging.StreamHandler())
    logger = logging.getLogger("holdfast")
    for handler in handlers:
        handler.setFormatter(RedactingFormatter("%(asctime)s %(levelname)s %(message)s"))
        logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    logger.propagate = False
