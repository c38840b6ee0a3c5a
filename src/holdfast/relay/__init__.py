"""The relay: a client's server, served to a host as if there were nothing between them."""

from __future__ import annotations

from holdfast.relay.sdk_streams import SdkStreams, streams

__all__ = ["SdkStreams", "streams"]
