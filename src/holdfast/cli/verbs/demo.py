"""``holdfast demo``: the demonstration that comes with the package."""

from __future__ import annotations

import click


@click.command()
@click.option("-v", "--verbose", is_flag=True, help="Show the client's log as well.")
def demo(verbose: bool) -> int:
    """See a client connect, list, call, and survive the death of its server."""
    from holdfast.demo.story import main

    return main(verbose=verbose)
