"""The server side of MCP, both eras. Pure: `_core.serve` does input, output and time.

A `Server` says what is offered and who handles what; a `ServerSession` is one client's connection;
a `ServerRequest` is one message being handled. `Catalog` keeps lists of tools, resources and
prompts.
"""
