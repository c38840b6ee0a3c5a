"""What the server said of itself when the connection was made, read leniently."""

from __future__ import annotations

import msgspec

from holdfast._core.calls.pipeline import Pipeline
from holdfast.types.base import decode
from holdfast.types.lifecycle import Implementation, ServerCapabilities


def info(pipeline: Pipeline) -> Implementation | None:
    facts = None if pipeline.started is None else pipeline.started.engine.facts
    if facts is None or facts.info is None:
        return None
    try:
        return decode(facts.info, Implementation)
    except msgspec.DecodeError:
        return None


def capabilities(pipeline: Pipeline) -> ServerCapabilities | None:
    facts = None if pipeline.started is None else pipeline.started.engine.facts
    if facts is None:
        return None
    try:
        return decode(facts.capabilities, ServerCapabilities)
    except msgspec.DecodeError:
        return ServerCapabilities()


def version(pipeline: Pipeline) -> str | None:
    era = None if pipeline.started is None else pipeline.started.engine.era
    return None if era is None else era.version


def instructions(pipeline: Pipeline) -> str | None:
    facts = None if pipeline.started is None else pipeline.started.engine.facts
    return None if facts is None else facts.instructions
