"""Which of the values that a user gives are secrets, and which are ordinary settings.

Each function returns the values that `known` is to search for: of variables, headers, URLs,
command lines, credentials and arguments.
"""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final
from urllib.parse import parse_qsl, unquote, urlsplit

import msgspec

from holdfast._core.redact.forms import has_digits_and_letters
from holdfast._core.redact.names import (
    default_names,
    hide_named,
    is_current_folder,
    is_path,
    words_of,
)
from holdfast._core.redact.skeletons import skeleton_of

# The rule, in the order in which it is applied
#
# Whoever gives a server ``env={"SOME_KEY": "…"}`` or ``headers={"X-Thing": "…"}`` does not say
# which of them are secret, and names do not tell: ``SOME_KEY`` may be one, ``LICENSE`` may be one.
# So *every* value that is given is taken for a secret, and hidden wherever it appears, but for
# those that are certainly none and whose absence would spoil every message:
#
# 1. A value of less than six characters (`needles.SHORTEST`): it would be found in other words.
# 2. An ordinary word of settings or of our own sentences, ``production``, ``localhost``, ``secret``
#    (`_ORDINARY`): hidden everywhere, it would hide the names by which secrets are found.
# 3. Unless the name is that of a secret:
#    - the variables that every program has (`_BASIC`: ``PATH``, ``HOME``, ``LANG`` …), and the
#      headers of HTTP itself (``Accept``, ``User-Agent`` …);
#    - version numbers and addresses of machines: ``3.12.1``, ``127.0.0.1:8080``;
#    - numbers and places whose names say so (``PORT``, ``DB_HOST``), and lists of ordinary words
#      or of those that tools are named by (`_USUAL`: ``issues``, ``weather``);
#    - paths and URLs, but for what is secret in them: user information, the values of secret names
#      in a query, and parts that are random (the address of a webhook is its password).
#
# ``env={"MODE": "production"}`` is therefore shown, ``env={"MODE": "blue-7"}`` is hidden.
# Variables that are inherited because every server inherits them are not looked at; those that
# are named in ``inherit_env`` are given, as those in ``env`` are; with ``inherit_env=True``, which
# passes on everything, those with the names of secrets.

_BASIC_NAMES: Final = """
    path home lang language logname pwd oldpwd shell term tmpdir tmp temp tz user username hostname
    editor pager display columns lines pythonpath pythonunbuffered pythondontwritebytecode
    pythonioencoding nodepath nodeenv virtualenv ldlibrarypath
    accept acceptencoding acceptlanguage acceptcharset contenttype contentlength contentencoding
    useragent host origin connection cachecontrol pragma via te date expect forwarded xforwardedfor
    xforwardedproto xforwardedhost
"""
_BASIC: Final = frozenset(_BASIC_NAMES.split())
_ORDINARY_WORDS: Final = """
    account action active address agent allowed always answer application argument arguments async
    automatic backend branch browser cannot chrome client closed cluster command config connect
    connected connection console container content context critical custom database default denied
    deploy desktop development disable disabled docker domain enable enabled english error errors
    exited expired external failed failure false fatal feature filesystem firefox folder format
    forward gateway github gitlab global google handler header headers headless holdfast hosted
    import inherit initialize internal invalid kubernetes latest library limited linux listen local
    localhost logging machine manual master memory message method minimal missing mobile module
    native network nothing notice notset offline online openai option options output package
    parameter params password plugin policy postgres postgresql preview primary private process
    prod production profile program project prompt protocol public python python3 readonly region
    release remote request required resource response result sandbox schema script search secret
    secure server servers service session setting settings silent simple socket source sqlite stable
    staging standard startup static status stderr stdin stdout stream streamable-http strict string
    system target testing thread timeout tokens tool tools trace traffic transport trusted ubuntu
    unknown unlimited update upload utf-8 utf8 value values verbose version warning webhook windows
    worker workspace writable yellow
"""
_ORDINARY: Final = frozenset(_ORDINARY_WORDS.split())
_USUAL_WORDS: Final = """
    actions amazon anthropic apache articles auto azure branches bucket calendar channels chromium
    claude cloudflare cohere comments commits contacts contents customers datadog dashboard debug
    default deepseek discord discussions documents dollars dropbox elastic email english events
    everything experiments feedback figma files firebase folders france french gemini german
    germany gists grafana heroku images invoices issues jenkins jupyter lambda linear llama
    markdown mariadb messages metrics milestones mistral models mongodb monitoring mysql neo4j
    netlify notebook notebooks notifications notion ollama oracle orders organizations outlook
    packages payments people pinecone playwright podman postgis prefer preferred prometheus
    projects prompts puppeteer qdrant queries rabbitmq readwrite records redis redshift regular
    releases reports repos repositories requests resources safari salesforce security sentry
    shopify sheets slack snowflake spanish spotify stripe supabase tables tavily teams telegram
    terraform threads tickets toolsets twilio twitter users vercel videos weather webkit workflow
    workflows youtube zendesk
"""
_USUAL: Final = _ORDINARY | frozenset(_USUAL_WORDS.split())
"""Words of settings and of tools' names: no secrets, unless their variable's name says so."""
_HARMLESS: Final = re.compile(
    r"v?\d{1,5}(?:\.\d{1,5}){1,3}(?:[-+.]?(?:a|b|rc|alpha|beta|dev|post)\.?\d{0,4})?"  # a version
    r"|(?:localhost|[\w-]+\.local|\[[0-9a-f:]+\]|\d{1,3}(?:\.\d{1,3}){3})(?::\d{1,5})?"  # a machine
    r"|[a-z]{2,3}[_-][A-Z]{2}(?:[.@][\w-]+)?"  # a locale
)
_MEASURE_WORDS: Final = """
    port timeout ttl size limit count max min level workers threads interval delay seconds ms width
    height retries bytes depth uid gid pid
"""
_MEASURES: Final = frozenset(_MEASURE_WORDS.split())
_PLACE: Final = re.compile(
    r"(?:[a-z][a-z0-9-]{0,62}\.)+[a-z]{2,16}(?::\d{1,5})?|[a-z]{2}(?:-[a-z]+){1,2}-\d"
)
_PLACES: Final = frozenset({"host", "hostname", "region", "zone", "domain", "server"})
_IN_QUERY: Final = frozenset({"key", "code", "sig", "signature", "tok", "k", "auth", "pass"})
"""Names that are secret in a query."""
_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{1,20}://")
_RUN: Final = re.compile(r"(?=[A-Za-z]*+\d)(?=\d*+[A-Za-z])[A-Za-z0-9]{16,}")
_UUID: Final = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_ASSIGNMENT: Final = re.compile(r"(?P<name>[\w.-]{1,128})\s*=\s*(?P<value>.*)", re.S)
_HEADER: Final = re.compile(r"(?P<name>[A-Za-z0-9-]{2,64}):\s+(?P<value>\S.*)", re.S)
_LONGEST_JSON: Final = 64 * 1024


def is_ordinary_word(value: str) -> bool:
    """Return True for a word that would spoil messages if it were hidden."""
    return value.strip().lower() in _ORDINARY or skeleton_of(value) in _ORDINARY


def of_variables(variables: Mapping[str, str]) -> Iterator[str]:
    """Yield the secrets among variables of an environment."""
    for name, value in variables.items():
        yield from _of_named(name, value)


def inherited(names: Iterable[str] | bool, environment: Mapping[str, str]) -> Mapping[str, str]:
    """Return the variables that are given by ``inherit_env``: those named, or the secret ones."""
    if isinstance(names, bool):
        is_secret = default_names().has
        return {name: environment[name] for name in environment if names and is_secret(name)}
    return {name: environment[name] for name in names if name in environment}


def of_headers(headers: Mapping[str, str]) -> Iterator[str]:
    """Yield the secrets in headers: tokens without their scheme, passwords, cookies."""
    for name, value in headers.items():
        if not isinstance(value, str):
            continue  # refused when it is sent
        words = "".join(filter(str.isalnum, name.lower()))
        if words in ("cookie", "setcookie"):
            yield from (part.partition("=")[2].strip() for part in value.split(";"))
        elif words in ("authorization", "proxyauthorization"):
            yield from _of_credentials(value)
        else:
            yield from _of_named(name, value)


def _of_credentials(value: str) -> Iterator[str]:
    """Yield the secrets of an Authorization header (RFC 9110, section 11.4)."""
    scheme, space, token = value.strip().partition(" ")
    token = token.strip() if space else scheme
    yield token
    if scheme.lower() == "basic":
        try:
            user = b64decode(token + "=" * (-len(token) % 4)).decode("utf-8", "replace")
        except ValueError:
            return
        yield user
        yield user.partition(":")[2]
    elif "=" in token.rstrip("="):  # Digest, or a signature
        yield from (part.strip('" ') for part in re.findall(r'=\s*("[^"]*"|[^\s,"]+)', token))


def _of_query(query: str) -> Iterator[str]:
    is_secret = default_names().has
    for name, value in parse_qsl(query):
        is_code = has_digits_and_letters(value, 8) and not _is_ordinary(name, value)
        if is_secret(name) or name.lower() in _IN_QUERY or _is_random(value) or is_code:
            yield value


def of_url(url: str) -> Iterator[str]:
    """Yield the secrets in a URL: user information, values of its query, random parts."""
    try:
        parts = urlsplit(url)
        user, password = unquote(parts.username or ""), unquote(parts.password or "")
    except ValueError:
        return
    if password or _is_random(user):
        yield from (password, user)
    if password:
        yield f"{user}:{password}"
    for query in (parts.query, parts.fragment):
        yield from _of_query(query)
    yield from (part for part in map(unquote, parts.path.split("/")) if _is_random(part))


def of_command(words: Sequence[str]) -> Iterator[str]:
    """Yield the secrets in a command line: values of secret flags and variables, headers, URLs."""
    is_secret = default_names().has
    secret_follows = False
    for word in words:
        if secret_follows and not word.startswith("-"):
            yield word
        assignment, header = _ASSIGNMENT.fullmatch(word), _HEADER.fullmatch(word)
        if assignment is not None and is_secret(assignment["name"]):
            yield assignment["value"]
        elif header is not None:
            if is_secret(header["name"]):
                yield from of_headers({header["name"]: header["value"]})
        else:
            yield from _inside(word)
        secret_follows = word.startswith("-") and is_secret(word)


def of_arguments(arguments: Any, secret_names: frozenset[str] | None) -> Iterator[str]:
    """Yield the values of secret fields: by their names, or by the schema (None: all of them)."""
    is_secret = default_names().has
    # A list of what is to be seen, not a recursion: arguments may be nested as deep as they like.
    waiting: list[tuple[Any, bool]] = [(arguments, secret_names is None)]
    while waiting:
        value, secret = waiting.pop()
        if isinstance(value, Mapping):
            for name, item in value.items():
                by_schema = secret_names is not None and name in secret_names
                # Not a number of tokens, though its name is that of a secret.
                by_name = is_secret(str(name)) and hide_named(str(name), item) is not item
                waiting.append((item, secret or by_schema or by_name))
        elif isinstance(value, list | tuple):
            waiting += [(item, secret) for item in value]
        elif secret and isinstance(value, str):
            yield value
        elif secret and isinstance(value, int | float) and not isinstance(value, bool):
            yield str(value)


def of_auth(options: Any) -> Iterator[str]:
    """Yield the secrets in what ``auth=…`` was given."""
    names = ["client_secret", "private_key", "id_token", "idp_client_secret"]
    if type(options).__name__ == "Bearer":
        names = ["token"]  # of a workload, this is the path of a file
    values = (getattr(options, name, None) for name in names)
    yield from (value for value in values if isinstance(value, str))


def of_login(login: Any) -> Iterator[str]:
    """Yield the secrets of a login: its tokens, its key, and those of the registered client."""
    client = login.client
    keys = (login.dpop_key, client.client_secret, client.private_key)
    yield from filter(None, (login.access_token, login.refresh_token, *keys))


def of_stdio(
    command: Sequence[str], env: Mapping[str, str], inherit_env: Iterable[str] | bool
) -> Iterator[str]:
    """Yield the secrets that a server is started with."""
    import os

    yield from of_command(command)
    yield from of_variables(inherited(inherit_env, os.environ))
    yield from of_variables(env)


def of_http(urls: Iterable[str | None], headers: Any, auth: Any) -> Iterator[str]:
    """Yield the secrets by which a server is reached: in its URL, a proxy's, headers, ``auth``."""
    for url in filter(None, urls):
        yield from of_url(url)
    if isinstance(headers, Mapping):
        yield from of_headers(headers)
    yield from of_auth(auth)


def _of_named(name: str, value: str) -> Iterator[str]:
    """Yield what is secret in one given value, by its name and its form."""
    yield from _inside(value)
    is_secret = default_names().has(name) and not is_current_folder(name, value)
    if is_secret or not _is_ordinary(name, value):
        yield value


def _is_ordinary(name: str, value: str) -> bool:
    """Return True for a value that is certainly no secret."""
    words = "".join(filter(str.isalnum, name.lower()))
    if words in _BASIC or words.startswith(("lc", "xdg")):
        return True
    if _HARMLESS.fullmatch(value.strip()) is not None or _is_setting(name, value):
        return True
    places = value.split(":") if is_path(value) and "\\" not in value else [value]
    return bool(_SCHEME.match(value)) or all(_is_plain_path(place) for place in places)


def _is_setting(name: str, value: str) -> bool:
    """Return True for a number, a place or a list of ordinary words, as their names say."""
    last_word = words_of(name)[-1:]
    if value.isdigit():
        return not _MEASURES.isdisjoint(last_word)
    if _PLACE.fullmatch(value) is not None:
        return not _PLACES.isdisjoint(last_word) and not any(map(_is_random, value.split(".")))
    return all(word in _USUAL for word in re.split(r"[\s,;|+_-]+", value.lower()))


def _is_plain_path(text: str) -> bool:
    """Return True for a path without a random part, which would be a secret and not a path."""
    is_relative = re.match(r"\.{1,2}/", text) is not None
    parts = re.split(r"[/\\]", text)
    return (is_path(text) or is_relative) and not any(map(_is_random, parts))


def _inside(value: str) -> Iterator[str]:
    """Yield secrets that are parts of a value: of a URL, of a connection string, of JSON."""
    if _SCHEME.match(value):
        yield from of_url(value)
    elif is_path(value):
        yield from filter(_is_random, re.split(r"[/\\]", value))
    is_secret = default_names().has
    for part in re.split(r"[;&]", value) if "=" in value else ():
        assignment = _ASSIGNMENT.fullmatch(part.strip())
        if assignment is not None and is_secret(assignment["name"]):
            yield assignment["value"].strip("\"'")
    if value[:1] in ("{", "[") and len(value) <= _LONGEST_JSON:
        try:
            yield from of_arguments(msgspec.json.decode(value), frozenset())
        except (ValueError, RecursionError):
            return


def _is_random(part: str) -> bool:
    """Return True for a part that is no word: long, of digits and letters, or a UUID."""
    if _RUN.search(part) or _UUID.search(part):
        return True
    kinds = (str.isdigit, str.isupper, str.islower)
    return len(part) >= 20 and "." not in part and all(any(map(kind, part)) for kind in kinds)
