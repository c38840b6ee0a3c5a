"""The ways in which a server wraps what it repeats, each as a function."""

from __future__ import annotations

import base64
import html
import json
import quopri
import re
import shlex
from collections.abc import Callable
from html.entities import html5
from unicodedata import normalize
from urllib.parse import quote, quote_plus

from holdfast._core.redact.needles import NeedleIndex

_OLD_NAMES = {char: name for name, char in html5.items() if not name.endswith(";")}


def _lower_hex(text: str) -> str:
    return "".join(char if char.isalnum() else quote(char, safe="").lower() for char in text)


def _utf16(text: str) -> str:
    data = text.encode("utf-16-be")
    return "".join(f"\\u{data[at] << 8 | data[at + 1]:04x}" for at in range(0, len(data), 2))


def _base64(before: bytes = b"", after: bytes = b"") -> Callable[[str], str]:
    return lambda text: base64.b64encode(before + text.encode() + after).decode()


def _lines(before: str) -> Callable[[str], str]:
    """Break a text as programs do that print."""
    return lambda text: f"\n{before}".join(text[at : at + 4] for at in range(0, len(text), 4))


ESCAPES: dict[str, Callable[[str], str]] = {
    "plain": str,
    # URLs
    "quote": quote,
    "quote all": lambda text: quote(text, safe=""),
    "quote lower": _lower_hex,
    "quote plus": quote_plus,
    "quote every character": lambda text: "".join(f"%{code:02x}" for code in text.encode()),
    "quote twice": lambda text: quote(quote(text)),
    # JSON
    "JSON": json.dumps,
    "JSON in UTF-8": lambda text: json.dumps(text, ensure_ascii=False),
    "JSON with slashes": lambda text: json.dumps(text).replace("/", "\\/"),
    "JSON in JSON": lambda text: json.dumps(json.dumps(text)),
    "JSON in JSON in JSON": lambda text: json.dumps(json.dumps(json.dumps(text))),
    "UTF-16": _utf16,
    "UTF-16 upper": lambda text: _utf16(text).upper().replace("\\U", "\\u"),
    # HTML
    "HTML": html.escape,
    "HTML without quotes": lambda text: html.escape(text, quote=False),
    "HTML decimal": lambda text: "".join(f"&#{ord(char)};" for char in text),
    "HTML hexadecimal": lambda text: "".join(f"&#x{ord(char):X};" for char in text),
    "XML": lambda text: text.encode("ascii", "xmlcharrefreplace").decode(),
    # shells and Python
    "shlex": shlex.quote,
    "shell, single quotes": lambda text: "'" + text.replace("'", "'\\''") + "'",
    "shell, backslashes": lambda text: "".join(
        char if char.isalnum() else f"\\{char}" for char in text
    ),
    "repr": repr,
    "repr of bytes": lambda text: repr(text.encode()),
    # base64
    "base64": _base64(),
    "base64 unpadded": lambda text: _base64()(text).rstrip("="),
    "base64 for URLs": lambda text: base64.urlsafe_b64encode(text.encode()).decode(),
    "base64 after one byte": _base64(b"x", b"yy"),
    "base64 after two bytes": _base64(b"xy", b"z"),
    "base64 of JSON": _base64(b'{"a":"', b'"}'),
    "base64 of a header": _base64(b"user:"),
    "base64 in lines": lambda text: base64.encodebytes(b"-" * 50 + text.encode() * 2).decode(),
    "base64 in a URL": lambda text: quote(_base64(b"", b"??>")(text), safe=""),
    "hexadecimal": lambda text: text.encode().hex(),
    # one in another
    "JSON of a URL": lambda text: json.dumps(quote(text)),
    "URL of JSON": lambda text: quote(json.dumps(text)),
    "HTML of JSON": lambda text: html.escape(json.dumps(text)),
    "shell of JSON": lambda text: shlex.quote(json.dumps(text)),
    "JSON of HTML": lambda text: json.dumps(html.escape(text)),
}

ENCODINGS: dict[str, Callable[[str], str]] = {
    "quoted-printable": lambda text: quopri.encodestring(text.encode(), quotetabs=True).decode(),
    "quoted-printable, all": lambda text: "".join(f"={code:02X}" for code in text.encode()),
    "octal": lambda text: "".join(f"\\{code:03o}" for code in text.encode()),
    "code points": lambda text: "".join(f"\\u{{{ord(char):x}}}" for char in text),
    "code points of Perl": lambda text: "".join(f"\\x{{{ord(char):x}}}" for char in text),
    "escape of JavaScript": lambda text: _utf16(text).replace("\\", "%"),
    "HTML without semicolons": lambda text: "".join(f"&#{ord(char):04}" for char in text),
    "SQL": lambda text: text.replace("'", "''"),
    "CSV": lambda text: text.replace('"', '""'),
    "colours": lambda text: f"\x1b[1m{text[:3]}\x1b[0m\x1b[38;5;12m{text[3:]}\x1b[0m",
    "colours in JSON": lambda text: json.dumps(f"{text[:3]}\x1b[0m{text[3:]}"),
    "without a width": "\u200b".join,
    "composed": lambda text: normalize("NFC", text),
    "decomposed": lambda text: normalize("NFD", text),
    "lines": _lines(""),
    "lines of a list": _lines("    "),
    "lines of a box": _lines("│ "),
    "UTF-16 in base64": lambda text: base64.b64encode(text.encode("utf-16-le")).decode(),
    "UTF-16 in hexadecimal": lambda text: text.encode("utf-16-le").hex(),
    "base64 of base64": lambda text: _base64()(_base64()(text)),
    "base64 of JSON that escapes": lambda text: _base64(b'{"a": ', b"}")(json.dumps(text)),
    "base64 of a URL": lambda text: _base64(b"a=")(quote(text, safe="")),
    "hexadecimal of a URL": lambda text: f"a={quote(text, safe='')}".encode().hex(),
    "bytes": lambda text: f"<Buffer {text.encode().hex(' ')}>",
    "bytes with colons": lambda text: text.encode().hex(":").upper(),
    "bytes of C": lambda text: ", ".join(f"0x{code:02x}" for code in text.encode()),
    "bytes of Python": lambda text: str(list(text.encode())),
    "upper case": str.upper,
    "lower case": str.lower,
    "in reverse": lambda text: text[::-1],
    "letters apart": " ".join,
    "a list of letters": lambda text: json.dumps(list(text), ensure_ascii=False),
    "parts of a string": lambda text: " +\n".join(
        json.dumps(text[at : at + 4], ensure_ascii=False) for at in range(0, len(text), 4)
    ),
    "lines of a comment": _lines("# "),
    "lines of a page": lambda text: _lines("")(text).replace("\n", "<br/>"),
    "lines of a Macintosh": lambda text: _lines("")(text).replace("\n", "\r"),
    "markup": lambda text: f'<b class="x">{html.escape(text[:3])}</b>{html.escape(text[3:])}',
    "CDATA": lambda text: f"<![CDATA[{text[:3]}]]><![CDATA[{text[3:]}]]>",
    "marks of direction": "\u200e".join,
    "a link of a terminal": lambda text: f"{text[:3]}\x1b]8;;https://x.example\x07{text[3:]}",
    "a control of a terminal": lambda text: f"{text[:3]}\x1b[?25h\x1b(B{text[3:]}",
    "colours as `cat -v` shows": lambda text: f"{text[:3]}^[[0;1m{text[3:]}",
    "bold letters of a printer": lambda text: "".join(f"{char}\b{char}" for char in text),
    "wide letters": lambda text: "".join(
        chr(ord(char) + 0xFEE0) if "!" <= char <= "~" else char for char in text
    ),
    "UTF-8 read as Latin-1": lambda text: text.encode().decode("latin-1"),
    "ASCII alone": lambda text: text.encode("ascii", "replace").decode(),
    "short octal": lambda text: "".join(f"\\{code:o}" for code in text.encode()),
    "long entities": lambda text: "".join(f"&#{ord(char):010};" for char in text),
    "LDAP": lambda text: "".join(f"\\{code:02x}" for code in text.encode()),
    "PowerShell": lambda text: "".join(f"`u{{{ord(char):x}}}" for char in text),
    "base64 in groups": lambda text: re.sub("(.{4})", r"\1 ", _base64()(text)),
    "base64 three times": lambda text: _base64()(_base64()(_base64()(text))),
    "UTF-16 in base64, big end first": lambda text: base64.b64encode(
        text.encode("utf-16-be")
    ).decode(),
    "hexadecimal in groups": lambda text: text.encode().hex(" ", 2),
    "bytes with dots": lambda text: text.encode().hex("."),
    "bytes before a word": lambda text: text.encode().hex(" ") + " add",
    "old names of HTML": lambda text: "".join(
        "&" + _OLD_NAMES[char] if char in _OLD_NAMES else char for char in text
    ),
    "names of characters": lambda text: text.encode("ascii", "namereplace").decode(),
    "comments of a page": lambda text: f"{text[:3]}<!-- x -->{text[3:]}",
    "a command of a terminal": lambda text: f"{text[:3]}\x1bP1;2|x\x1b\\{text[3:]}",
    "colours without their escape": lambda text: f"{text[:3]}[0;31m{text[3:]}",
    "letters that nobody sees": "\u3164".join,
    "marks, joiners and selectors": "\u2068\ufe0f\u034f".join,
    "controls": "\x07".join,
    "UTF-16 in base64, marked": lambda text: base64.b64encode(text.encode("utf-16")).decode(),
    "UTF-16 in hexadecimal, marked": lambda text: text.encode("utf-16").hex(),
    "UTF-16 read as bytes": lambda text: text.encode("utf-16-le").decode("latin-1"),
    "UTF-16 as Python shows": lambda text: repr(text.encode("utf-16-be")),
    "UTF-32 read as bytes": lambda text: text.encode("utf-32-le").decode("latin-1"),
    "decomposed, in base64": lambda text: _base64()(normalize("NFD", text)),
    "undecoded": lambda text: text.encode().decode("ascii", "surrogateescape"),
    "octal bytes": lambda text: " ".join(f"{code:03o}" for code in text.encode()),
    "octal bytes of Python": lambda text: ", ".join(map(oct, text.encode())),
    "a typed array": lambda text: json.dumps(
        {str(place): code for place, code in enumerate(text.encode())}, indent=1
    ),
    "bytes of JSON": lambda text: json.dumps({"type": "Buffer", "data": list(text.encode())}),
}
"""Wrappings that undo only as a whole, or by a guess: not one in another."""

WRAPS: dict[str, Callable[[str], str]] = {**ESCAPES, **ENCODINGS}

PLACES: dict[str, str] = {
    "alone": "{}",
    "inside of a word": "abc{}def",
    "in a sentence": "error: the value {} was not accepted",
    "in a long line": "x" * 5000 + " {} " + "y " * 3000,
    "in a query": "https://host.example/x?a={}&b=1",
    "on a line": "first line\n    {}\nlast line\n",
}

SECRETS: dict[str, str] = {
    "token": "s3cr3t-Value/+=x",
    "short": "hunt3r",
    "odd": "p\"a's\\s <&> wörd$ é😀x",
    "with spaces": "a b c d/e f",
    "letters": "opensesame",
    "like an escape": "50%off!x%41y\\n",
    "digits": "90210771",
}


def index_of(*values: str) -> NeedleIndex:
    """Return an index that knows these values."""
    index = NeedleIndex()
    for value in values:
        index.add(value)
    return index
