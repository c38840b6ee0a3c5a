"""Subscriptions: which news a client asks a server for."""

from __future__ import annotations

from holdfast.types.base import Meta, Result, Wire


class SubscriptionFilter(Wire, kw_only=True):
    """The news that are wanted, or that the server agrees to send."""

    tools_list_changed: bool = False
    prompts_list_changed: bool = False
    resources_list_changed: bool = False
    resource_subscriptions: list[str] | None = None


class SubscriptionAcknowledged(Meta, kw_only=True):
    """A server's word on which of the wanted news it will send."""

    notifications: SubscriptionFilter


class SubscriptionEnded(Result, kw_only=True):
    """The answer that ends a subscription. Its ``_meta`` names the subscription."""
