"""``holdfast demo``: the demonstration that comes with the package."""

from __future__ import annotations

import click


@click.command()
def demo() -> int | None:
    """See a client connect, list, call, and outlive its server."""
    from holdfast.demo.story import main

    return main()
