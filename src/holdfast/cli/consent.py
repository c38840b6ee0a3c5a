"""Asking a person: show what is about to run or to be written, and take yes or no."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from holdfast._core.text import visible_json, visible_lines
from holdfast.cli.output import has_colour, highlight, tell
from holdfast.cli.progress import status
from holdfast.errors import LoginFailed, TrustError

if TYPE_CHECKING:
    from holdfast import LoginRequest
    from holdfast.config import Approval, Configuration


def is_interactive() -> bool:
    """Return whether a person can be asked: stdin and stderr are a terminal."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def confirm(question: str, default: bool = False) -> bool:
    """Ask on stderr."""
    with status.aside():
        return click.confirm(question, default=default, err=True)


def present(approval: Approval) -> None:
    """Show what is about to be approved, to the letter."""
    text = visible_json(json.dumps(approval.definition, indent=2, ensure_ascii=False))
    text = highlight(text) if has_colour(sys.stderr) else text
    tell(f"{visible_lines(f'{approval.name}, from {approval.file}:')}\n{text}")
    for word, said in (("changed", approval.changes), ("careful", approval.cautions)):
        for one in said:
            tell(visible_lines(f"{word}: {one}"))


def agreed(approvals: Sequence[Approval]) -> bool:
    """Show each approval, and ask once for all of them.

    Raises:
        TrustError: Nobody can be asked.
    """
    for approval in approvals:
        present(approval)
    names = [approval.name for approval in approvals]
    if not sys.stdin.isatty():
        from holdfast.config.trust import approving

        command = approving(*names).replace("trust", "trust --yes", 1)
        raise TrustError(f"{', '.join(names)}: nobody to ask; after reading it: {command}")
    return confirm("Approve it?" if len(names) == 1 else f"Approve these {len(names)}?")


def approve_in_place(config: Configuration, name: str) -> None:
    """At a terminal, offer to approve a server that a verb is about to use.

    Elsewhere nothing happens, and the server is refused.

    Raises:
        TrustError: The person said no.
    """
    if not is_interactive():
        return
    entry = config[name]
    if entry.errors or entry.disabled or entry.trust().ok:
        return
    from holdfast.config import approve, preview

    seen = preview(config, name)
    present(seen)
    if not confirm("Approve it and go on?"):
        raise TrustError(f"{name}: not approved")
    approve(config, name, seen=seen)


async def offer_login(request: LoginRequest) -> str | None:
    """At a terminal, say who asks for a login and where, and start it if the person agrees.

    Raises:
        LoginFailed: The person said no.
    """
    from holdfast._core.auth.browser import browser_login, describe

    tell(visible_lines(describe(request)))
    if not confirm("Log in now?", default=True):
        raise LoginFailed("the login was declined")
    with status.aside():
        return await browser_login(request)
