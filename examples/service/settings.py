"""What can be set from outside, all of it in the environment."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

HERE: Final = Path(__file__).resolve().parent
ROOT: Final = HERE.parents[1]
LOCK: Final = HERE / "holdfast.lock"
RUN: Final = "SERVICE_RUN"
"""A word that every process of one run has in its environment, so that it can be found."""


@dataclass(frozen=True)
class Settings:
    """How one worker works."""

    ledger: str
    """The ledger's URL."""
    folder: Path
    """Where audit records and traces go."""
    inventory: tuple[str, ...] = (sys.executable, "-m", "examples.service.inventory")
    timeout: float = 5.0
    """Seconds that one call may take."""
    longest_pause: float = 1.0
    """Seconds between two attempts at bringing a server back, at most."""
    keep: float = 1.0
    """Seconds for which an item may be shown as it was."""
    traces: bool = False

    @classmethod
    def read(cls, environ: Mapping[str, str] = os.environ) -> Settings:
        return cls(
            ledger=environ.get("SERVICE_LEDGER", "http://127.0.0.1:8001/mcp"),
            folder=Path(environ.get("SERVICE_FOLDER", ".")),
            timeout=float(environ.get("SERVICE_TIMEOUT", cls.timeout)),
            longest_pause=float(environ.get("SERVICE_LONGEST_PAUSE", cls.longest_pause)),
            keep=float(environ.get("SERVICE_KEEP", cls.keep)),
            traces=environ.get("SERVICE_TRACES") == "1",
        )
