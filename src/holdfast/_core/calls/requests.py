"""The requests that need no more than a channel: prompts, completion, ping, log level."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from holdfast._core.calls.channel import UNREADABLE, Channel
from holdfast._core.calls.options import of_type
from holdfast.errors import ValidationError
from holdfast.types.base import Wire
from holdfast.types.resources import CompleteResult, PromptResult

if TYPE_CHECKING:
    from holdfast._core.eras.base import Era
    from holdfast.types.resources import Completion, Reference

W = TypeVar("W", bound=Wire)


class SimpleRequests:
    """Requests of one client that are sent as they are, and whose answer is decoded once."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel

    def notify(self, method: str) -> None:
        """Send a notification without parameters, where the revision has it."""
        driver = self._channel.driver
        driver.send(driver.engine.notify(method))

    async def _read(
        self, method: str, params: dict[str, Any], about: str, kind: type[W], timeout: float | None
    ) -> W:
        deadline = self._channel.deadline(method, timeout)
        call = self._channel.call(method, params, deadline, about=about, repeatable=True)
        return self._channel.decode(call, await self._channel.request(call, deadline), kind)

    async def get_prompt(
        self, name: str, arguments: Mapping[str, str] | None, timeout: float | None
    ) -> PromptResult:
        """Return a prompt with its arguments filled in."""
        of_type("name", name)
        params = {"name": name, "arguments": {} if arguments is None else arguments}
        return await self._read("prompts/get", params, name, PromptResult, timeout)

    async def complete(
        self,
        ref: Reference,
        argument: tuple[str, str],
        context: Mapping[str, str] | None,
        timeout: float | None,
    ) -> Completion:
        """Return the suggestions for one argument."""
        name, value = argument
        params: dict[str, Any] = {"ref": ref, "argument": {"name": name, "value": value}}
        if context is not None:
            params["context"] = {"arguments": context}
        found = await self._read("completion/complete", params, name, CompleteResult, timeout)
        return found.completion

    async def ping(self, timeout: float | None) -> None:
        deadline = self._channel.deadline("ping", timeout)
        await self._channel.in_era(deadline, lambda era: self._channel.send(era.ping(), deadline))

    async def set_log_level(self, level: str, timeout: float | None) -> None:
        from holdfast.types.lifecycle import LOG_LEVELS

        if level not in LOG_LEVELS:
            raise ValidationError(f"log level {level!r}: must be one of {', '.join(LOG_LEVELS)}")
        deadline = self._channel.deadline("logging/setLevel", timeout)

        async def tell(era: Era) -> None:
            if (request := era.log_level(level)) is not None:
                await self._channel.send(request, deadline)

        await self._channel.in_era(deadline, tell)
        self._channel.driver.engine.log_level = level

    async def send(
        self,
        method: str,
        params: Mapping[str, Any] | None,
        timeout: float | None,
        total_timeout: float | None,
    ) -> Any:
        of_type("method", method)
        of_type("params", params, Mapping | None, "a mapping")
        plain = None if params is None else dict(params)
        deadline = self._channel.deadline(method, timeout, total_timeout)
        call = self._channel.call(method, plain, deadline)
        raw = await self._channel.request(call, deadline)
        try:
            return msgspec.json.decode(raw)
        except UNREADABLE as error:
            raise self._channel.broken(call, str(error)) from error
