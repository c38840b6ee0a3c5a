"""Negotiate the protocol revision: ``server/discover``, else ``initialize``.

The negotiation is a generator. It yields what to send and how long to wait for an answer, and
receives the answer, or the silence. It follows 2026-07-28 basic/versioning, Backward
Compatibility with Initialization-Based Versions, and the section of the same name of each
transport (basic/transports/stdio, basic/transports/streamable-http):

* Probe with ``server/discover``. A ``DiscoverResult`` or a recognized modern error identifies a
  modern server; use a revision that it names.
* Any other error identifies a server of the handshake era, and so does silence over stdio. Send
  ``initialize`` with the newest revision of that era (2025-11-25 basic/lifecycle, Version
  Negotiation: "This SHOULD be the latest version supported by the client").
* Over HTTP, a refused ``initialize`` leads to the transport of 2024-11-05.
* The era of a server may be remembered, "re-probing if the cached assumption later fails".

Real servers make it longer: see ``_hedge``, and ``StartAgain`` for servers that exit when they
are probed or that accept both openings.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from typing import Any, Final

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from holdfast._core.boundary import RefusalReason, StreamOptions
from holdfast._core.eras import headers
from holdfast._core.eras.base import OutgoingRequest, best, declare
from holdfast._core.eras.conversation import (
    Agreement,
    Conversation,
    Facts,
    Heard,
    NoAgreement,
    Plan,
    Reply,
    Silence,
    StartAgain,
    Turn,
)
from holdfast._core.eras.handshake import Handshake
from holdfast._core.eras.revisions import (
    HANDSHAKE,
    HEADER_MISMATCH,
    MISSING_CAPABILITY,
    MODERN_ERRORS,
    SERVER_INFO,
    STATELESS,
    UNSUPPORTED_VERSION,
    VERSIONS,
)
from holdfast._core.eras.stateless import Stateless, request_meta
from holdfast._core.wire.codes import METHOD_NOT_FOUND
from holdfast._core.wire.jsonrpc import MALFORMED, ErrorObject, encode
from holdfast.errors import HandshakeRefused, Hint, HoldfastError, ProtocolError

DISCOVER: Final = "server/discover"
INITIALIZE: Final = "initialize"

OLDER: Final = "sse"
"""The variant of the transport before Streamable HTTP."""
_OLDER: Final = (RefusalReason.NO_SUCH_SESSION, RefusalReason.NOT_UNDERSTOOD)
"""The ways an older endpoint refuses a POST."""
DEMANDS: Final = (HEADER_MISMATCH, MISSING_CAPABILITY)
"""A modern server wants other headers, or abilities that we lack."""


def negotiate(plan: Plan) -> Conversation:
    """Return the revision agreed on, or raise ``NoAgreement`` or ``StartAgain``."""
    if plan.pin in HANDSHAKE:
        return (yield from _initialize(plan, plan.pin))
    if plan.opening == "initialize" and plan.pin is None:
        return (yield from _initialize(plan, HANDSHAKE[0]))
    return (yield from _probe(plan))


def _probe(plan: Plan) -> Conversation:
    sure = plan.pin is not None or plan.opening == "discover"
    patience = None if sure else plan.patience
    heard = yield Turn((_discover(plan),), patience)
    while isinstance(heard, Silence):
        if not heard.unread:
            return (yield from _hedge(plan))
        heard = yield Turn((), patience)
    return (yield from _judge(plan, heard))


def _judge(plan: Plan, answer: Reply, *, again: bool = True) -> Conversation:
    """Act on the answer to the probe."""
    offered = _offered(answer)
    if offered is None:
        return (yield from _fall_back(plan, answer))
    version = best(offered, _stateless(plan))
    if version is not None and answer.result is not None:
        return _stateless_agreement(plan, version, answer.result)
    if version is not None and again:
        # basic/versioning, Protocol Version Negotiation: "select a mutually supported version from
        # the supported list and retry the request". Once: a list may contradict its error.
        answer = yield from _answer_to(_discover(plan, version))
        return (yield from _judge(plan, answer, again=False))
    return (yield from _from_list(plan, offered))


def _from_list(plan: Plan, offered: list[Any]) -> Conversation:
    """Use a revision that a modern server names, if it does not speak our modern one."""
    version = best(offered, HANDSHAKE) if plan.pin is None else None
    if version is None:
        raise NoAgreement(_nothing_in_common(plan, offered), final=True)
    return (yield from _initialize(plan, version))


def _fall_back(plan: Plan, answer: Reply) -> Conversation:
    """Fall back to ``initialize``: every error that is not a modern one means a legacy server."""
    if plan.pin is not None:
        story = _story(answer)
        message = f"the server does not speak {plan.pin}: {story}"
        hint = Hint("protocol", "left out negotiates an older one")
        raise NoAgreement(ProtocolError(message, hints=(hint,)), final=True)
    if answer.reason is not None and answer.fault is not None and answer.fault.code in DEMANDS:
        # A recognized modern error identifies a modern server: falling back would not help.
        raise NoAgreement(_refused(answer))
    return (yield from _initialize(plan, HANDSHAKE[0], before=answer))


# The hedge.
#
# 2026-07-28 basic/transports/stdio, Backward Compatibility, lets a client take silence for the
# sign of a legacy server. But silence has three causes: a legacy server that ignores unknown
# methods (it will never answer), a slow modern one, and a slow legacy one (both will). Waiting
# long punishes the users of the first; falling back at once sends ``initialize`` to the second,
# and a dual-era server then serves the whole process by legacy rules. So after a short silence,
# counted only once the server has read the probe, ``initialize`` is sent as well, and both
# answers are awaited. What they mean together:
#
# ``server/discover``   ``initialize``    the server is                        the outcome
# -------------------   --------------    ----------------------------------   -----------------
# nothing yet           result            legacy, deaf to unknown methods      handshake
# error                 result            legacy, and slow                     handshake
# modern                result            dual-era, in an era nobody knows     start again: probe
# modern                error             modern, and slow                     stateless
# modern                nothing           modern, deaf to ``initialize``       stateless, after
#                                                                              another silence
# nothing               modern error      modern; the probe's answer is lost   probe again
# error                 error             neither, or of the older transport   start again: SSE,
#                                                                              or no agreement
#
# "Modern" is a ``DiscoverResult`` that names a revision we speak, or an
# ``UnsupportedProtocolVersionError`` (basic/versioning, Protocol Version Negotiation).


def _hedge(plan: Plan) -> Conversation:
    """Send ``initialize`` after the probe was met with silence, and await both answers."""
    heard = yield Turn((_initialize_request(plan, HANDSHAKE[0]),))
    probe: Reply | None = None
    initialized: Reply | None = None
    while True:
        if isinstance(heard, Silence):
            if probe is not None:
                return (yield from _judge(plan, probe))
            return (yield from _judge(plan, (yield from _answer_to(_discover(plan)))))
        if heard.method == DISCOVER:
            probe = heard
        else:
            initialized = heard
        modern = probe is not None and _is_modern(probe)
        if initialized is not None and initialized.result is not None:
            if modern:
                # basic/versioning: "an initialize request selects legacy semantics, scoped to the
                # stdio process". Which of the two it obeyed cannot be known.
                raise StartAgain("discover")
            return _handshake_agreement(plan, HANDSHAKE[0], initialized.result)
        if probe is not None and initialized is not None:
            if modern:
                return (yield from _judge(plan, probe))
            if _may_be_older(plan, initialized):
                raise StartAgain("initialize", OLDER, _refused(initialized))
            raise NoAgreement(
                _both_refused(probe, initialized), final=_refuses_revision(initialized)
            )
        is_modern = modern or (initialized is not None and _is_modern(initialized))
        heard = yield Turn((), plan.patience if is_modern else None)


def _initialize(plan: Plan, version: str, before: Reply | None = None) -> Conversation:
    answer = yield from _answer_to(_initialize_request(plan, version))
    if answer.result is not None:
        return _handshake_agreement(plan, version, answer.result)
    offered = [offer for offer in _listed(answer.fault) or () if offer != version]
    older = best(offered, HANDSHAKE) if plan.pin is None else None
    if older is not None:
        answer = yield from _answer_to(_initialize_request(plan, older))
        if answer.result is not None:
            return _handshake_agreement(plan, older, answer.result)
    elif before is None and _may_be_replaced(plan, answer):
        if not plan.streams:
            raise StartAgain("discover")
        return (yield from _judge(plan, (yield from _answer_to(_discover(plan)))))
    elif _may_be_older(plan, answer):
        raise StartAgain("initialize", OLDER, _refused(answer))
    error = _refused(answer) if before is None else _both_refused(before, answer)
    raise NoAgreement(error, final=_refuses_revision(answer))


def _may_be_replaced(plan: Plan, answer: Reply) -> bool:
    """Return True if ``initialize`` was sent by memory, and a modern server may have refused it.

    2026-07-28 basic/versioning, Backward Compatibility: the era may be cached, "re-probing if the
    cached assumption later fails"; which error a modern server gives is not specified.
    """
    if plan.pin is not None or plan.opening != "initialize" or plan.variant is not None:
        return False
    code = None if answer.fault is None else answer.fault.code
    names_stateless = best(_listed(answer.fault) or (), STATELESS) is not None
    return plan.streams or names_stateless or code in (METHOD_NOT_FOUND, *MODERN_ERRORS)


def _may_be_older(plan: Plan, answer: Reply) -> bool:
    """Return True if the address may be of the transport of 2024-11-05.

    2026-07-28 basic/transports/streamable-http, HTTP+SSE Transport (2024-11-05): after a 400, 404
    or 405 to ``initialize``, "issue a GET request to the server URL".
    """
    refused = answer.reason in _OLDER and plan.streams and plan.variant is None
    code = None if answer.fault is None else answer.fault.code
    return refused and code not in (METHOD_NOT_FOUND, UNSUPPORTED_VERSION, *DEMANDS)


def _answer_to(request: OutgoingRequest) -> Generator[Turn, Heard, Reply]:
    """Send it and wait for its own answer; skip others that come late."""
    heard = yield Turn((request,))
    while isinstance(heard, Silence) or heard.method != request.method:
        heard = yield Turn()
    return heard


# Requests.


def _discover(plan: Plan, version: str | None = None) -> OutgoingRequest:
    version = version or _stateless(plan)[0]
    meta = request_meta(version, plan.identity.info(), declared(plan, changes=False))
    options = StreamOptions(headers.standard(version, DISCOVER, None))
    return OutgoingRequest(DISCOVER, {"_meta": meta}, options)


def _initialize_request(plan: Plan, version: str) -> OutgoingRequest:
    params = {
        "protocolVersion": version,
        "capabilities": declared(plan, changes=True),
        "clientInfo": plan.identity.info(),
    }
    return OutgoingRequest(INITIALIZE, params, StreamOptions({}, resume=True))


def declared(plan: Plan, *, changes: bool) -> dict[str, Any]:
    """Return the capabilities that a client declares; ``changes`` as `declare` has it."""
    return declare(sorted(plan.abilities), plan.identity.capabilities, changes=changes)


def _stateless(plan: Plan) -> tuple[str, ...]:
    return STATELESS if plan.pin is None else (plan.pin,)


# Answers.


class _DiscoverResult(Struct):
    """2026-07-28 server/discover, Response: strict in what decides, lenient in the rest."""

    supportedVersions: list[Any]  # noqa: N815
    capabilities: Raw = Raw(b"{}")
    instructions: Any = None
    meta: Any = msgspec.field(name="_meta", default=None)


class _InitializeResult(Struct):
    protocolVersion: str  # noqa: N815
    capabilities: Raw = Raw(b"{}")
    serverInfo: Raw | UnsetType = UNSET  # noqa: N815
    instructions: Any = None


def _offered(answer: Reply) -> list[Any] | None:
    """Return the revisions that a modern answer names; None if the answer is not modern."""
    if answer.result is not None:
        try:
            return msgspec.json.decode(answer.result, type=_DiscoverResult).supportedVersions
        except MALFORMED:
            return None
    fault = answer.fault
    return _listed(fault) if fault is not None and fault.code == UNSUPPORTED_VERSION else None


def _listed(fault: ErrorObject | None) -> list[Any] | None:
    """Return the revisions that an error names, whatever its code.

    2025-11-25 basic/lifecycle, Error Handling, shows -32602 with ``data.supported``.
    """
    if fault is None or not isinstance(fault.data, dict):
        return None
    supported = fault.data.get("supported")
    return supported if isinstance(supported, list) else None


def _refuses_revision(answer: Reply) -> bool:
    """Return True if a server said that it does not speak the revision: asking again is no use.

    2026-07-28 basic/versioning, Protocol Version Negotiation, has a code for it; 2025-11-25
    basic/lifecycle, Error Handling, a list of those that the server speaks.
    """
    fault = answer.fault
    return fault is not None and (fault.code == UNSUPPORTED_VERSION or _listed(fault) is not None)


def _is_modern(answer: Reply) -> bool:
    offered = _offered(answer)
    return offered is not None and (answer.result is None or best(offered, STATELESS) is not None)


def _stateless_agreement(plan: Plan, version: str, raw: Raw) -> Agreement:
    result = msgspec.json.decode(raw, type=_DiscoverResult)
    meta = result.meta if isinstance(result.meta, dict) else {}
    info = Raw(encode(meta[SERVER_INFO])) if SERVER_INFO in meta else None
    era = Stateless(version, plan.identity.info(), declared(plan, changes=False))
    instructions = result.instructions if isinstance(result.instructions, str) else None
    facts = Facts(version, info, result.capabilities, instructions, raw)
    return Agreement(era, facts, "discover")


def _handshake_agreement(plan: Plan, requested: str, raw: Raw) -> Agreement:
    try:
        result = msgspec.json.decode(raw, type=_InitializeResult)
    except MALFORMED as error:
        message = f"the server's answer to initialize is not valid: {error}"
        raise NoAgreement(ProtocolError(message)) from None
    version = result.protocolVersion
    if version not in HANDSHAKE or plan.pin not in (None, version):
        # 2025-11-25 basic/lifecycle, Version Negotiation: a client that does not support the
        # version in the server's response "SHOULD disconnect".
        message = f"asked for {requested}, the server answered {version!r}, which is not supported"
        raise NoAgreement(ProtocolError(message + _cure(plan)), final=True)
    info = None if result.serverInfo is UNSET else result.serverInfo
    instructions = result.instructions if isinstance(result.instructions, str) else None
    facts = Facts(version, info, result.capabilities, instructions, raw)
    return Agreement(Handshake(version), facts, "initialize")


# Errors.


def _cure(plan: Plan) -> str:
    if plan.pin is None:
        return f" (we speak {', '.join(VERSIONS)})"
    return f" (the revision {plan.pin!r} is pinned)"


def _story(answer: Reply) -> str:
    if answer.fault is None:
        return f"it answered {answer.method} with something else"
    return f"it answered {answer.method} with error {answer.fault.code}: {answer.fault.message}"


def _nothing_in_common(plan: Plan, offered: Iterable[Any]) -> HoldfastError:
    theirs = ", ".join(version for version in offered if isinstance(version, str)) or "none"
    return ProtocolError(f"no common protocol revision: the server speaks {theirs}{_cure(plan)}")


def _refused(answer: Reply, before: str = "") -> HoldfastError:
    fault = answer.fault or ErrorObject()
    code = fault.code if isinstance(fault.code, int) else None
    text = f"cannot connect: {_story(answer)}{before}"
    return HandshakeRefused(text, code=code, data=fault.data)


def _both_refused(probe: Reply, initialized: Reply) -> HoldfastError:
    return _refused(initialized, f"; before that, {_story(probe)}")
