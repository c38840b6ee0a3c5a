"""Generate modules with typed handles from a server's tools.

Nothing here reads a file, a clock or a server. `generate` takes tools and gives text.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from holdfast._lazy import lazily

if TYPE_CHECKING:
    from holdfast.codegen.model import SessionTools
    from holdfast.types.tools import Tool

__all__ = ["Generated", "SessionTools", "generate"]


@dataclass(frozen=True, slots=True)
class Generated:
    """A module's source, and reports on how it was made."""

    source: str
    reports: tuple[str, ...]
    """The names and schemas that were renamed, omitted or truncated, a sentence each."""
    tools: int
    hash: str


def generate(
    tools: Sequence[Tool],
    *,
    command: str = "holdfast codegen",
    target: str | Sequence[str] | None = None,
    sync: bool = False,
    stamp: str | None = None,
    session: SessionTools | None = None,
    hide: Collection[str] = (),
    capabilities: Collection[str] = (),
) -> Generated:
    """Generate a module with typed handles for some tools.

    Args:
        tools: The tools, in any order.
        command: The command that generates the module again, for its header and for errors.
        target: The target that the module connects to by default.
        sync: Add handles for code without an event loop.
        stamp: A time for the header; without it the same tools give the same bytes.
        session: A server that keeps sessions by name.
        hide: Tools (``"a.b"``) or namespaces (``"a.*"``) to leave out.
        capabilities: The client's capabilities when it listed the tools, such as
            ``"elicitation.form"``; the module declares them too.
    """
    from holdfast.codegen import emit, model

    made = model.Model(tools, hide=hide, session=session)
    writer = emit.ModuleWriter(made, sync, tuple(sorted(capabilities)))
    source = writer.module(command, target, stamp)
    return Generated(source, tuple(made.reports), len(made.schemas), made.hash)


if not TYPE_CHECKING:
    __getattr__, __dir__ = lazily(__name__, {"model": ("SessionTools",)})
