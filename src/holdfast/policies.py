"""The policies of a client: small frozen values with the defaults in one place."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, Literal, get_args

from msgspec import Struct, field
from msgspec.structs import force_setattr, replace

from holdfast._version import __version__
from holdfast.errors import ValidationError

WhenDown = Literal["fail", "wait"]
Replay = Literal["never", "safe"]
Validate = Literal["known", "always", "required", "off"]
Results = Literal["warn", "raise", "off"]
Approval = Literal["annotations", "always", "never"]
CacheMode = Literal["use", "refresh", "bypass"]
CACHE_MODES: Final = get_args(CacheMode)

EPSILON = 5.0
"""Seconds added to a tombstone's life for jitter and scheduling."""
_LARGEST = 1e300
_MAY_BE_NONE = frozenset(
    {"total", "tools", "resources", "prompts", "reads", "attempts", "concurrent"}
)


def _positive(
    policy: Struct, names: Iterable[str], *, zero: bool = False, whole: bool = False
) -> None:
    """Refuse a number that could never work, by name and value."""
    for name in names:
        value = getattr(policy, name)
        if value is None and name in _MAY_BE_NONE:
            continue
        if not _is_usable(value, whole=whole) or (value == 0 and not zero):
            kind = "a whole number" if whole else "a number"
            raise refused(policy, name, f"{kind}, {'0 or more' if zero else 'more than 0'}")


def _is_usable(value: Any, *, whole: bool) -> bool:
    """Return True for a number that is not negative, and that a clock can add up."""
    if not isinstance(value, int if whole else int | float) or isinstance(value, bool):
        return False
    return 0 <= value < _LARGEST or value == float("inf")


def refused(policy: Struct, name: str, expected: str) -> ValidationError:
    """Return the error for a field that is not ``expected``, with its name and value."""
    value = getattr(policy, name)
    return ValidationError(f"{type(policy).__name__}({name}={value!r}): must be {expected}")


def _of_type(policy: Struct, expected: str, kind: Any, *names: str) -> None:
    """Refuse values of another type, by name and value."""
    for name in names:
        if not isinstance(getattr(policy, name), kind):
            raise refused(policy, name, expected)


def one_of(name: str, value: object, allowed: tuple[str, ...]) -> None:
    """Raise `ValidationError` if the value is not one of those allowed."""
    if value not in allowed:
        choices = " or ".join(repr(choice) for choice in allowed)
        raise ValidationError(f"{name}={value!r}: must be {choices}")


def _hold(policy: Struct, *names: str) -> None:
    """Store names as tuples: a generator could be read only once."""
    for name in names:
        value = getattr(policy, name)
        if isinstance(value, str):
            raise refused(policy, name, "a list, not one string")
        if value is None:
            continue
        if not isinstance(value, Iterable):
            raise refused(policy, name, "a list of strings")
        force_setattr(policy, name, tuple(value))
        if not all(isinstance(item, str) for item in getattr(policy, name)):
            raise refused(policy, name, "a list of strings")


class Timeouts(Struct, frozen=True, kw_only=True):
    """Seconds. ``request`` is an idle clock that progress resets; ``total`` is the hard cap.

    ``total`` ends a call whatever else is allowed, also one that may be silent for longer. None:
    five minutes, or as long as the call may be silent if that is longer.
    ``tools``, ``resources`` and ``prompts`` replace ``request`` for their kind of method.
    ``probe`` is how long a server that has read our probe may stay silent before the
    older handshake is tried as well.
    """

    request: float = 30.0
    handshake: float = 10.0
    total: float | None = None
    tools: float | None = None
    resources: float | None = None
    prompts: float | None = None
    probe: float = 0.5

    def __post_init__(self) -> None:
        _positive(self, self.__struct_fields__)

    def for_method(self, method: str) -> float:
        """Return the timeout of a method in seconds."""
        kind = method.partition("/")[0]
        seconds: float | None = getattr(self, kind) if kind in _KINDS else None
        return self.request if seconds is None else seconds

    def total_for(self, idle: float) -> float:
        """Return the seconds in all of a call that may be silent for ``idle`` seconds."""
        return max(_TOTAL, idle) if self.total is None else self.total


_KINDS = frozenset({"tools", "resources", "prompts"})
_TOTAL = 300.0
"""Seconds that a call may take in all, if nobody says more, or less."""


class Limits(Struct, frozen=True, kw_only=True):
    """Bounds on the memory and the work that a server can cause."""

    frame_bytes: int = 16 * 1024 * 1024
    """The longest message that is read; a longer one closes the link."""
    pages: int = 1000
    """Pages of one list."""
    list_bytes: int = 64 * 1024 * 1024
    """Bytes of one list, all its pages together."""
    list_items: int = 100_000
    """Items of one list, all its pages together."""
    rounds: int = 10
    """Rounds of ``input_required`` in one call."""
    mailbox: int = 1000
    """Notifications waiting for a handler; the oldest go first."""
    asks: int = 64
    """Questions of the server that are handled at once, and that one round may have."""
    tombstones: int = 65_536
    """Ended requests whose late answers are still recognised."""
    backlog_bytes: int = 1024 * 1024
    """Bytes waiting for a server that does not read."""
    stderr_bytes: int = 64 * 1024
    """The tail of the server's stderr that is kept."""
    concurrent: int | None = None
    """Calls that the server is sent at once; the others wait for a place, within their own time."""
    rate: str | None = None
    """Calls that the server is sent in a time, such as ``"60/m"`` or ``"10/s"``."""
    store: Any = None
    """A `holdfast.stores.Store` in which processes share ``concurrent`` and ``rate``, those of
    tools included; in files a ``redis://`` URL, or the path of an SQLite database."""
    key: str | None = None
    """The name of the limit in the store; None: made of the server's URL or command."""
    lease: float = 10.0
    """Seconds after which the places of a process that died are free for others."""

    def __post_init__(self) -> None:
        names = (name for name in self.__struct_fields__ if name not in _SHARING)
        _positive(self, names, whole=True)
        _positive(self, ("lease",))
        if self.rate is not None:
            _check_rate(self, self.rate, repr(self.rate))
        _of_type(self, "a string", str | None, "key")
        if self.lease < _SHORTEST_LEASE:
            raise refused(self, "lease", f"at least {_SHORTEST_LEASE:g} second")
        if not (self.store is None or isinstance(self.store, str) or hasattr(self.store, "lock")):
            raise refused(self, "store", "a holdfast.stores.Store")


_SHARING = frozenset({"rate", "store", "key", "lease"})
_SHORTEST_LEASE = 1.0


def _check_rate(policy: Struct, rate: Any, setting: str) -> None:
    from holdfast._core.rate import parse_rate

    try:
        parse_rate(rate)
    except ValidationError as error:
        reason = error.message.removeprefix(f"rate={rate!r}: ")
        raise ValidationError(f"{type(policy).__name__}(rate={setting}): {reason}") from None


class Backoff(Struct, frozen=True, kw_only=True):
    """The delays before reconnecting: ``first`` seconds, doubling to ``max``, ± ``jitter``.

    The delay starts over only after ``healthy_after`` seconds of uptime: a good handshake
    alone is not health. ``attempts`` failed attempts in a row end the client (None: never).
    """

    first: float = 1.0
    max: float = 30.0
    jitter: float = 0.2
    healthy_after: float = 10.0
    attempts: int | None = None

    def __post_init__(self) -> None:
        _positive(self, ("first", "max"))
        _positive(self, ("attempts",), whole=True)
        _positive(self, ("jitter", "healthy_after"), zero=True)
        if self.jitter > 1:
            raise refused(self, "jitter", "at most 1")

    def delay(self, failures: int, jitter: Iterator[float]) -> float:
        """Return the pause after ``failures`` failed attempts in a row (1 is the first)."""
        exponent = min(failures - 1, 62)
        return jittered(min(self.max, self.first * 2.0**exponent), self.jitter, jitter)


def jittered(delay: float, factor: float, jitter: Iterator[float]) -> float:
    """Return ``delay`` ± ``factor``; ``jitter`` yields numbers in [0, 1)."""
    return max(0.0, delay * (1.0 + (next(jitter) - 0.5) * 2.0 * factor))


class Identity(Struct, frozen=True, kw_only=True):
    """The identity and capabilities that the client declares."""

    name: str = "holdfast"
    version: str = __version__
    title: str | None = None
    capabilities: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _of_type(self, "a string", str, "name", "version")
        _of_type(self, "a string", str | None, "title")
        _of_type(self, "a dict", dict, "capabilities")

    def info(self) -> dict[str, str]:
        """Return the client's name, version and title as sent to servers."""
        title = {} if self.title is None else {"title": self.title}
        return {"name": self.name, "version": self.version, **title}

    def with_extensions(self, names: Iterable[str]) -> Identity:
        """Return the same identity, declaring these extensions as well."""
        extensions = self.capabilities.get("extensions", {})
        declared = {**{name: {} for name in names}, **extensions}
        if declared == extensions:
            return self
        return replace(self, capabilities={**self.capabilities, "extensions": declared})

    def declaring(self, capabilities: Mapping[str, Any]) -> Identity:
        """Return the same identity, declaring these capabilities and their features as well."""
        declared = dict(capabilities)
        for name, settings in self.capabilities.items():
            merges = isinstance(settings, dict) and name in declared
            declared[name] = {**declared[name], **settings} if merges else settings
        return replace(self, capabilities=declared)


class ToolPolicy(Struct, frozen=True, kw_only=True):
    """The tools that may be called, their timeouts, and validation.

    Names in ``timeouts``, ``allow`` and ``deny`` may be patterns (``"browser.*"``); of two
    that fit, the longer one counts. ``allow`` is everything unless given; ``deny`` wins.
    ``validate`` checks names and arguments before anything is sent: ``"always"`` lists the
    tools once before the first call of one that is not known, and leaves the check to the server,
    with a warning, if the list cannot be had within half of the call's time; ``"required"`` sends
    nothing unchecked; ``"known"`` checks only what was listed already, ``"off"`` leaves both to
    the server. ``results`` says what becomes of a
    structured result that does not fit its schema. ``approve`` is asked before a call is sent: a
    function of an `ApprovalRequest`, which returns True, or False or a reason; or a word, for all
    tools or by name: ``"annotations"`` asks ``Handlers(approval=…)`` about tools that may be
    destructive, ``"always"`` about every call, ``"never"`` about none.
    ``budget`` is the number of characters of a result that a language model is given, for all
    tools or by name; the whole is ``result.full``. ``concurrent`` and ``rate`` limit the calls of
    tools as `Limits` does those of the server; tools that fit one pattern share its limit.
    ``idempotency`` names the parameter that is given the key of a call with ``once=``, for all
    tools or by name; without it, the usual names are recognised.
    """

    timeouts: Mapping[str, float] = field(default_factory=dict)
    allow: Iterable[str] | None = None
    deny: Iterable[str] = ()
    validate: Validate = "always"
    results: Results = "warn"
    approve: Callable[[Any], Any] | Approval | Mapping[str, Approval] | None = None
    budget: int | Mapping[str, int] | None = None
    idempotency: str | Mapping[str, str] | None = None
    concurrent: Mapping[str, int] = field(default_factory=dict)
    rate: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._check_approvals()
        self._check_limits()
        _of_type(self, "a parameter's name, or names by tool", str | Mapping | None, "idempotency")
        budgets = self.budget.values() if isinstance(self.budget, Mapping) else (self.budget,)
        for budget in budgets:
            if budget is not None and (type(budget) is not int or budget < 1):
                raise refused(self, "budget", "a number of characters")
        one_of("validate", self.validate, ("known", "always", "required", "off"))
        one_of("results", self.results, ("warn", "raise", "off"))
        _hold(self, "allow", "deny")
        _of_type(self, "a mapping of tools to seconds", Mapping, "timeouts")
        for tool, seconds in self.timeouts.items():
            if type(seconds) not in (int, float) or not seconds > 0:
                option = f"ToolPolicy(timeouts={{{tool!r}: {seconds!r}}})"
                raise ValidationError(f"{option}: must be a number, more than 0")

    def _check_approvals(self) -> None:
        rules = self.approve.values() if isinstance(self.approve, Mapping) else (self.approve,)
        for rule in rules:
            if not (rule is self.approve and (rule is None or callable(rule))):
                one_of("approve", rule, ("annotations", "always", "never"))

    def _check_limits(self) -> None:
        _of_type(self, "a mapping of tools to numbers", Mapping, "concurrent")
        _of_type(self, "a mapping of tools to rates", Mapping, "rate")
        for tool, places in self.concurrent.items():
            if type(places) is not int or places < 1:
                option = f"ToolPolicy(concurrent={{{tool!r}: {places!r}}})"
                raise ValidationError(f"{option}: must be a whole number, more than 0")
        for tool, rate in self.rate.items():
            _check_rate(self, rate, f"{{{tool!r}: {rate!r}}}")

    @property
    def is_limited(self) -> bool:
        """True if any tool has a limit."""
        return bool(self.concurrent or self.rate)

    def limits_of(self, name: str) -> tuple[str | None, str | None]:
        """Return the names or patterns under which a tool's ``concurrent`` and ``rate`` stand."""
        return _fitting(name, self.concurrent), _fitting(name, self.rate)

    def enables(self, name: str) -> bool:
        """Return True if the tool may be called."""
        allowed = self.allow is None or _fitting(name, self.allow) is not None
        return allowed and _fitting(name, self.deny) is None

    def timeout(self, name: str) -> float | None:
        """Return the tool's own timeout in seconds; None if it has none."""
        seconds: float | None = _rule(name, self.timeouts)
        return seconds

    def approve_of(self, name: str) -> Callable[[Any], Any] | Approval | None:
        """Return what approves calls of a tool; None: no approval is needed."""
        rule: Callable[[Any], Any] | Approval | None = _rule(name, self.approve)
        return rule

    def idempotency_of(self, name: str) -> str | None:
        """Return the parameter of a tool that takes the key of a call; None: by the usual names."""
        parameter: str | None = _rule(name, self.idempotency)
        return parameter

    def budget_of(self, name: str) -> int | None:
        """Return the characters of a tool's result that a model is given; None: all."""
        characters: int | None = _rule(name, self.budget)
        return characters


def _rule(name: str, rules: Any) -> Any:
    """Return the rule for a tool: one for all, or that of a mapping which fits the name."""
    if not isinstance(rules, Mapping):
        return rules
    fitting = _fitting(name, rules)
    return None if fitting is None else rules[fitting]


def _fitting(name: str, patterns: Iterable[str]) -> str | None:
    """Return the name itself, or the longest pattern that fits it."""
    if not patterns:
        return None
    from fnmatch import fnmatchcase

    fitting = [pattern for pattern in patterns if pattern == name or fnmatchcase(name, pattern)]
    return max(fitting, key=lambda pattern: (pattern == name, len(pattern)), default=None)


class Cache(Struct, frozen=True, kw_only=True):
    """The cache lifetimes of lists and resources. A server's own ``ttlMs`` takes precedence.

    ``ttl`` seconds apply where the server says nothing (0: not cached); ``tools``, ``prompts``,
    ``resources`` (both lists of them, and that of skills) and ``reads`` replace it for their kind.
    """

    ttl: float = 0.0
    tools: float | None = None
    prompts: float | None = None
    resources: float | None = None
    reads: float | None = None
    max_ttl: float = 86_400.0
    """The longest ``ttlMs`` of a server that is honoured, in seconds."""
    mode: CacheMode = "use"
    """The default cache mode of calls: ``"bypass"`` switches the cache off."""
    serve_stale: bool = False
    """Return an expired answer, marked as stale, when the server cannot be reached."""
    invalidate_on: Iterable[str] = ()
    """Tools whose calls invalidate all cached results."""
    watch: bool = False
    """Subscribe to list changes if the server sends them only to subscribers."""
    entries: int = 1000
    bytes: int = 64 * 1024 * 1024
    store: Any = None
    """A `holdfast.stores.Store` to use instead of memory of the client's own."""
    context: str | None = None
    """The owner of private results in the store: clients with the same value share theirs."""

    def __post_init__(self) -> None:
        _positive(self, ("ttl", "tools", "prompts", "resources", "reads", "max_ttl"), zero=True)
        _positive(self, ("entries", "bytes"), whole=True)
        one_of("mode", self.mode, CACHE_MODES)
        _hold(self, "invalidate_on")
        _of_type(self, "True or False", bool, "serve_stale", "watch")
        _of_type(self, "a string", str | None, "context")
        if self.store is not None and not hasattr(self.store, "lock"):
            raise refused(self, "store", "a holdfast.stores.Store")

    def ttl_for(self, method: str) -> float:
        """Return the seconds for a method whose answer names none."""
        seconds: float | None = getattr(self, _CACHED[method])
        return self.ttl if seconds is None else seconds


_CACHED = {
    "tools/list": "tools",
    "prompts/list": "prompts",
    "resources/list": "resources",
    "resources/templates/list": "resources",
    "resources/read": "reads",
    "skills/list": "resources",
}


_SECRETS = """
password passwd passphrase passcode pwd secret token apikey accesskey privatekey secretkey
signingkey encryptionkey accountkey sharedkey authorization auth bearer jwt credential cookie
sessionid otp cvv cvc ssn authcode authorizationcode devicecode codeverifier clientassertion
samlresponse amzsignature amzcredential accesstoken authtoken bearertoken idtoken refreshtoken
securitytoken sessiontoken apitoken pw passwort kennwort sessid connectsid mnemonic seedphrase
recoveryphrase recoverycode backupcode verificationcode onetimecode 2facode mfacode masterkey
sshkey rootkey subscriptionkey functionskey functionkey licensekey servicekey deploykey hmackey
aeskey authkey sessionkey csrf xsrf totp idtokenhint githubpat gitlabpat azurepat devopspat
session connectionstring connectionstr connstring connstr
"""
SECRETS = tuple(_SECRETS.split())
"""The words in the names of secret fields."""


class Redaction(Struct, frozen=True, kw_only=True):
    """The fields and texts that are redacted in audit records and call logs.

    ``keys`` are words: a field is secret if its name has one of them (``api_key``, ``apiKey``
    and ``X-API-Key`` alike). ``patterns`` are regular expressions for secrets inside texts.
    ``schema`` also goes by the tool's own hints: ``writeOnly`` and ``format: password``.
    """

    keys: Iterable[str] = SECRETS
    patterns: Iterable[str] = ()
    schema: bool = True
    on: bool = True

    def __post_init__(self) -> None:
        _hold(self, "keys", "patterns")
        _of_type(self, "True or False", bool, "schema", "on")
        if self.patterns:
            import re

            try:
                [re.compile(pattern) for pattern in self.patterns]
            except re.error as error:
                raise refused(self, "patterns", f"regular expressions ({error})") from None


class Observability(Struct, frozen=True, kw_only=True):
    """Audit records, tracing and metrics. All are off, and cost nothing, unless enabled.

    ``audit`` is called with a record of every tool call; True writes the records to the log
    ``holdfast.audit``, as a level of its own for that logger does. ``opentelemetry`` makes
    spans and metrics; without providers of your own, OpenTelemetry's global ones are used.
    """

    audit: Callable[[Any], Any] | bool | None = None
    redaction: Redaction = Redaction()
    opentelemetry: bool = False
    tracer_provider: Any = None
    meter_provider: Any = None

    def __post_init__(self) -> None:
        if not (self.audit is None or isinstance(self.audit, bool) or callable(self.audit)):
            raise refused(self, "audit", "True, False or a function")
        _of_type(self, "a holdfast.policies.Redaction", Redaction, "redaction")
        _of_type(self, "True or False", bool, "opentelemetry")


class Policy(Struct, frozen=True, kw_only=True):
    """All policies of one client, together."""

    timeouts: Timeouts = Timeouts()
    limits: Limits = Limits()
    backoff: Backoff = Backoff()
    identity: Identity = Identity()
    protocol: str | None = None
    when_down: WhenDown = "fail"
    replay: Replay = "never"
    tools: ToolPolicy = ToolPolicy()
    cache: Cache = Cache()
    observability: Observability = Observability()
    ledger: Any = None
    """A `holdfast.Ledger` for calls with ``once=``; None: the user's own."""

    def __post_init__(self) -> None:
        one_of("when_down", self.when_down, ("fail", "wait"))
        one_of("replay", self.replay, ("never", "safe"))

    @property
    def tombstone_ttl(self) -> float:
        """Seconds after which no late answer can come: request, backoff and handshake."""
        times = self.timeouts
        return times.request + times.handshake + self.backoff.max + EPSILON


POLICIES: Final[dict[str, Any]] = {
    "timeouts": Timeouts,
    "limits": Limits,
    "backoff": Backoff,
    "identity": Identity,
    "tools": ToolPolicy,
    "cache": Cache,
    "observability": Observability,
}
"""The type of each option that is a policy."""
