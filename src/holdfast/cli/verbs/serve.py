"""``holdfast serve``: a server on stdio, for a host, through a connection that is restored."""

from __future__ import annotations

import click

from holdfast.cli.output import Exit
from holdfast.cli.target import ServerTarget, ServerVerb


@click.command(cls=ServerVerb, takes="")
async def serve(target: ServerTarget) -> int:
    """Serve a server on standard input and output, and hold the connection to it.

    For the configuration of a host (an editor, an agent): it starts this command instead of the
    server. A server that dies is started again; the call that it had is answered with an error
    that says whether it may have run, and the next one works.

    \b
    holdfast serve git
    holdfast serve -- python server.py
    """
    from holdfast._core.serve import stdio
    from holdfast.relay.sharing import SharedRelay

    # Standard input is the host's: nobody can be asked, and stdout is the protocol's.
    target.options.setdefault("when_down", "wait")
    async with target.client(ask=False) as client:
        await stdio.serve(SharedRelay(client).join().server)
    return Exit.OK
