"""The echo server of the transport contract, in each of the shapes of HTTP."""

from __future__ import annotations

from holdfast._core.server.session import ServerSession
from holdfast.testing.echo_server import make_server
from tests.http.rogue import Reply, Request, Rogue, event
from tests.server.turns import Turns


class EchoHttp(Rogue):
    """Does what each request says, until one says ``die``."""

    events = False
    """Answer with a stream even where one message is all."""

    async def obey(self, request: Request, reply: Reply) -> None:
        lines: list[bytes] = []
        deaths: list[None] = []
        server = make_server(lambda: deaths.append(None))
        ServerSession(server, lines.append, Turns()).feed(request.body)
        if deaths:
            await self.die(reply)
        else:
            await self.write(lines, request, reply)

    async def die(self, reply: Reply) -> None:
        self.deafen()
        reply.reset()

    async def write(self, lines: list[bytes], request: Request, reply: Reply) -> None:
        if not lines:
            await reply.gone()
        elif len(lines) == 1 and not self.events:
            await reply.body(lines[0])
        else:
            await reply.stream(b"".join(event(line.decode().rstrip("\n")) for line in lines))
            await reply.end()


class EchoSse(EchoHttp):
    """The same over one stream, as in 2024-11-05."""

    stream: Reply | None = None

    async def obey(self, request: Request, reply: Reply) -> None:
        if request.method == "GET":
            await reply.stream(event("/messages", name="endpoint"))
            self.stream = reply
            await reply.gone()
        else:
            await super().obey(request, reply)

    async def die(self, reply: Reply) -> None:
        await super().die(reply)
        assert self.stream is not None
        self.stream.reset()

    async def write(self, lines: list[bytes], request: Request, reply: Reply) -> None:
        await reply.status(202)
        assert self.stream is not None
        if lines:
            await self.stream.send(b"".join(event(line.decode().rstrip("\n")) for line in lines))
