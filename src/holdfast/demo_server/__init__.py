"""A small MCP server over stdio, to try clients against: `python -m holdfast.demo_server`.

It needs nothing but the standard library and speaks both eras of the protocol in one process.

    __main__.py       the command line
    server.py         reads messages, finds the era and the handler, answers
    handlers.py       one function a method; the tables of methods are at its foot
    eras.py           what differs between the revisions of the protocol
    workers.py        threads for the tools
    call.py           one request being handled: waiting, progress, logging, asking the client
    questions.py      requests to the client that wait for an answer
    subscriptions.py  who is told when a note changes
    tools.py          the tools
    schema.py         checks a tool's arguments
    resources.py      static texts, a picture, and the notes that the `note` tool writes
    prompts.py        prompts, and completion for them and for the notes
    picture.py        draws a PNG
    wire.py           JSON-RPC on one line: parsing, writing, errors
"""
