"""Show a person what is about to be used, and ask: servers of files, calls of logs."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from holdfast._core.text import show_json, visible, visible_json
from holdfast.cli.main import columns_of_terminal
from holdfast.cli.output import Output, has_color, highlight
from holdfast.cli.prompts import confirm, is_interactive, show_pages
from holdfast.errors import TrustError, ValidationError

if TYPE_CHECKING:
    from holdfast.calllog.entries import Entry
    from holdfast.config import Approval, Configuration

# An approval is worth what was read. Three rules hold at every place that asks for one:
#
# 1. All of it is shown: the command with every argument, the environment, the folder, headers,
#    settings, the arguments of calls. Nothing is redacted or cut. ``password=`cmd` `` in a shell's
#    argument is code, and looks like a secret; word fifty-one is as good a place for it as any.
# 2. It is shown as it is: unseen characters are escaped, long texts wait at each screen.
# 3. The yes is for what was shown. The values that are shown are the ones that are written or
#    sent; a file is not read again in between (CWE-367). Where its content counts too (a file of
#    variables, a certificate), the approval compares the fingerprint that was shown.
#
# Lists (``servers``, ``config show``) redact and cut. They ask nothing.

MOST_LISTED = 20
"""Calls in the error for a script, which approves nothing."""


def show_approvals(approvals: Sequence[Approval]) -> bool:
    """Show servers whole; return False if the person stopped before the end."""
    lines = [line for approval in approvals for line in ("", *_lines(approval))]
    return show_pages(lines[1:], _colored, "nothing is approved")


def _lines(approval: Approval) -> list[str]:
    text = json.dumps(approval.definition, indent=2, ensure_ascii=False)
    return [
        visible(f"{approval.name}, from {approval.file}:"),
        *visible_json(text).split("\n"),
        *(visible(f"changed: {change}") for change in approval.changes),
        *(visible(f"careful: {caution}") for caution in approval.cautions),
    ]


def _colored(line: str) -> str:
    is_json = line[:1] in ("{", "}", " ")
    return highlight(line) if is_json and has_color(sys.stderr) else line


def ask_approval(
    output: Output, approvals: Sequence[Approval], question: str, command: str
) -> bool:
    """Show each approval, and ask once for all.

    Raises:
        TrustError: Nobody can be asked; it names the ``command`` that does it without asking.
    """
    if output.json or not is_interactive():
        if not output.json:  # whose stderr is one line
            show_approvals(approvals)
        names = ", ".join(approval.name for approval in approvals)
        raise TrustError(f"{names}: nobody to ask; after reading it: {command}")
    return show_approvals(approvals) and confirm(question)


def approve_in_place(config: Configuration, name: str) -> None:
    """Offer to approve a server that a verb is about to use. Raises TrustError at a no."""
    entry = config.servers[name]
    if entry.errors or entry.disabled or entry.trust().ok:
        return
    from holdfast.config import approve, preview

    seen = preview(config, name)
    if not (show_approvals([seen]) and confirm("Approve it and go on?")):
        raise TrustError(f"{name}: not approved")
    approve(config, name, seen=seen)


def approve_calls(calls: Sequence[Entry], file: str) -> bool:
    """Ask at a terminal before calls of tools that are not read-only; elsewhere refuse.

    The calls that are shown are the ones that are sent: the file is not read again.
    """
    heading = "These calls may change something:"
    if not is_interactive():
        lines = [f"  {visible(call.name)} {show_json(call.arguments)}" for call in calls]
        if len(calls) > MOST_LISTED:
            lines[MOST_LISTED:] = [f"  and {len(calls) - MOST_LISTED} more; all are in {file}"]
        ending = "Nothing was sent. Add --yes to send them without asking."
        raise ValidationError("\n".join([heading, *lines, ending]))
    lines = [heading]
    for number, call in enumerate(calls, 1):
        head = f"  {number} of {len(calls)}: {visible(call.name)} "
        text = visible_json(json.dumps(call.arguments, ensure_ascii=False))
        if len(head + text) > columns_of_terminal(2):
            text = visible_json(json.dumps(call.arguments, indent=2, ensure_ascii=False))
        lines += f"{head}{text}".replace("\n", "\n  ").split("\n")
    return show_pages(lines, _colored, "nothing is sent") and confirm("Send them?")
