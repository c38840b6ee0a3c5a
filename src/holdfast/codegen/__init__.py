"""Modules made of a server's tools: typed handles, from schemas.

Nothing here reads a file, a clock or a server. `generate` takes tools and gives text.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from holdfast._core.lazy import lazily

if TYPE_CHECKING:
    from holdfast.codegen.model import SessionTools
    from holdfast.types.tools import Tool

__all__ = ["Generated", "SessionTools", "generate"]


@dataclass(frozen=True, slots=True)
class Generated:
    """A module's source, and what there is to say of it."""

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
    """The source of a module with typed handles for these tools.

    ``command`` is what generates it again, ``target`` what it connects to by itself. ``sync``
    adds handles for code without an event loop. ``stamp`` is a time to note in the header;
    without it the same tools give the same bytes. ``session`` describes a server that keeps
    sessions by name, ``hide`` names tools (``"a.b"``) or namespaces (``"a.*"``) to leave out.
    ``capabilities`` are those that the client had declared when it got the tools: the module
    declares them too (``"sampling"``, ``"elicitation.form"``).
    """
    from holdfast.codegen import emit, model

    made = model.build(tools, hide=hide, session=session)
    declared = tuple(sorted(capabilities))
    source = emit.render(
        made, command=command, target=target, sync=sync, stamp=stamp, capabilities=declared
    )
    return Generated(source, tuple(made.reports), len(made.schemas), made.hash)


if not TYPE_CHECKING:
    __getattr__, __dir__ = lazily(__name__, {"model": ("SessionTools",)})
