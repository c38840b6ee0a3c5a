"""What redaction hides and what it leaves, for every place that writes something down.

``TEXTS`` are texts with the parts that must not survive; ``VALUES`` the same for JSON values;
``OPEN_TEXTS`` and ``OPEN_VALUES`` must come through unchanged. The tokens are put together here, so
that scanners for leaked secrets do not take them for real ones.
"""

from __future__ import annotations

import base64
import json
from typing import Any

BODY = "MIIEowIBAAKCAQEAx7m3Qb0kq1vY2n8fJ4LrT5wZsE9uHcGdKpXoVaIyRt6UeNwB"
JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9P"
HEX = "0123456789abcdef" * 2
ALNUM = "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8s9T0"
BASIC = base64.b64encode(b"aladdin:opensesame").decode()


def pem(kind: str, headers: str = "", newline: str = "\n") -> str:
    lines = [f"-----BEGIN {kind}-----", headers, BODY, BODY[::-1], f"-----END {kind}-----"]
    return newline.join(line for line in lines if line)


DEK = "Proc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,3F17F5316E2BAC89D9DB6A0B3AD1A2B7\n"

TOKENS: list[str] = [
    "sk-" + "live-0123456789abcdefghij",
    "sk-" + "proj-" + ALNUM,
    "sk-" + "ant-api03-" + ALNUM,
    "sk-" + ALNUM,
    "sk" + "_live_" + ALNUM[:24],
    "rk" + "_test_" + ALNUM[:24],
    "ghp" + "_" + ALNUM[:36],
    "gho" + "_" + ALNUM[:36],
    "github" + "_pat_" + ALNUM,
    "glpat" + "-" + ALNUM[:20],
    "xoxb" + "-0123456789-0123456789-" + ALNUM[:24],
    "xapp" + "-1-A0123-0123456789-" + HEX,
    "AKIA" + "IOSFODNN7EXAMPLE",
    "ASIA" + "IOSFODNN7EXAMPLE",
    "AIza" + "SyA" + ALNUM[:32],
    "ya29" + ".a0Af" + ALNUM,
    "GOCSPX" + "-" + ALNUM[:28],
    "npm" + "_" + ALNUM[:36],
    "pypi" + "-AgEIcHlwaS5vcmc" + ALNUM,
    "hf" + "_" + ALNUM[:34],
    "SG" + "." + ALNUM[:22] + "." + ALNUM,
    "shpat" + "_" + HEX,
    "dop" + "_v1_" + HEX * 2,
    "hvs" + "." + ALNUM,
    "whsec" + "_" + ALNUM[:32],
    "dckr" + "_pat_" + ALNUM[:27],
    "123456789" + ":AA" + ALNUM[:33],
    "AGE-SECRET-KEY-1" + ALNUM.upper(),
    JWT,
]

TEXTS: list[tuple[str, tuple[str, ...]]] = [
    ('got {"tokens": ["hunter2abc", "zq9kw7z"]} back', ("hunter2abc", "zq9kw7z")),
    ("accesstokens=['hunter2abc']", ("hunter2abc",)),
    ("your password is: hunter2abc", ("hunter2abc",)),
    ("the token was 'hunter2abc'.", ("hunter2abc",)),
    ('<add key="ApiKey" value="hunter2abc"/>', ("hunter2abc",)),
    ("password: |\n  hunter2abc\n  more\nuser: me", ("hunter2abc", "more")),
    *((f"use {token} please", (token,)) for token in TOKENS),
    *((f"https://{token}@host.example/x", (token,)) for token in TOKENS[:8]),
    # private keys
    (f"key:\n{pem('RSA PRIVATE KEY')}\nend", (BODY, BODY[::-1])),
    (f"key:\n{pem('RSA PRIVATE KEY', DEK)}\nend", (BODY, BODY[::-1], "3F17F531")),
    (pem("PRIVATE KEY"), (BODY,)),
    (pem("OPENSSH PRIVATE KEY"), (BODY,)),
    (pem("EC PRIVATE KEY", newline="\\n"), (BODY,)),
    (pem("PGP PRIVATE KEY BLOCK", "Version: GnuPG v2 - x"), (BODY,)),
    (pem("ENCRYPTED PRIVATE KEY")[:90], (BODY[:30],)),
    # URLs
    ("postgres://me:hunter2@host/db", ("hunter2",)),
    ("postgres://me:hun/ter2@host/db", ("hun/", "ter2")),
    ("postgres://me:hunt@er2@host/db", ("hunt", "er2")),
    ("mysql://root:p@ss/w0rd@10.0.0.1:3306/app?x=1", ("p@ss", "w0rd", "ss/")),
    ("https://me:hun/ter2@host.example/a", ("hun/", "ter2")),
    ("redis://:hunter2@cache:6379/0", ("hunter2",)),
    ("amqp://u:12/34@mq", ("12/34", "34@")),
    (f"see https://{HEX}@sentry.example/1", (HEX,)),
    (f"https://x-access-token:{ALNUM}@git.example/a.git", (ALNUM,)),
    (f"https://{ALNUM}:x-oauth-basic@git.example/a.git", (ALNUM,)),
    ("https://proxy.example/?next=https://u:hunter2@h.example/", ("hunter2",)),
    ("https://h.example/cb?access_token=hunter2&x=1", ("hunter2",)),
    ("GET /cb?x=1&api_key=hunter2#top", ("hunter2",)),
    ("https://h.example/cb#id_token=hunter2", ("hunter2",)),
    ("https://b.example/c?sv=2024&sig=aGVsbG8lM0Q%3D&se=1", ("aGVsbG8",)),
    ("https://s3.example/k?X-Amz-Signature=deadbeef99&X-Amz-Expires=9", ("deadbeef99",)),
    ("https://hooks.slack.com/services/T000/B000/" + ALNUM[:24], (ALNUM[:24],)),
    ("https://discord.com/api/webhooks/123456/" + ALNUM, (ALNUM,)),
    # headers
    (f"Authorization: Basic {BASIC}", (BASIC,)),
    ("Authorization: Bearer hunter2", ("hunter2",)),
    ("authorization: bearer xyzzy", ("xyzzy",)),
    ("Authorization: ApiKey hunter2 and more", ("hunter2", "more")),
    ('Authorization: Digest username="me", response="6629fae4"', ("6629fae4", '"me"')),
    ('> sent Digest username="me", realm="r", response="6629fae4"', ("6629fae4",)),
    ("Authorization: AWS4-HMAC-SHA256 Credential=AK/x, Signature=fe5f80", ("fe5f80",)),
    (f"Proxy-Authorization: Basic {BASIC}\nHost: x", (BASIC,)),
    (f"Authorization: DPoP {JWT}", (JWT,)),
    ("Cookie: sid=zqx123; theme=dark", ("zqx123", "dark")),
    ("Set-Cookie: sid=zqx123; Path=/; HttpOnly", ("zqx123",)),
    ("X-Api-Key: hunter2", ("hunter2",)),
    ("x-auth-token: hunter2\r\nHost: x", ("hunter2",)),
    ("failed with Bearer abcdef0123456789.", ("abcdef0123456789",)),
    (f"sent Basic {BASIC} to it", (BASIC,)),
    ("curl -H 'Authorization: Bearer hunter2' https://x.example", ("hunter2",)),
    ("curl -u me:hunter2 https://x.example", ("hunter2",)),
    ("curl --user me:hunter2 https://x.example", ("hunter2",)),
    # names in text
    ("password=hunter2", ("hunter2",)),
    ("password: hunter2", ("hunter2",)),
    ("the PASSWORD = 'hunter two'", ("hunter", "two")),
    ("export DB_PASSWORD=hunter2; run", ("hunter2",)),
    ("AWS_SECRET_ACCESS_KEY=wJalr/XUtn+FEMI", ("wJalr", "FEMI")),
    ("mysql --password hunter2 -h x", ("hunter2",)),
    ("run --api-key=hunter2", ("hunter2",)),
    ('run --token "hunter two"', ("hunter", "two")),
    ('{"password": "hunter2"', ("hunter2",)),
    ("{'client_secret': 'hunter2', 'a': 1}", ("hunter2",)),
    ('said {"password":"hun\\"ter2"} there', ("hun", "ter2")),
    ('{\\"password\\": \\"hunter2\\", \\"a\\": 1}', ("hunter2",)),
    ('{\\\\\\"password\\\\\\": \\\\\\"hunter2\\\\\\"}', ("hunter2",)),
    ("<password>hunter2</password>", ("hunter2",)),
    ("Login(user='me', password='hunter2', n=1)", ("hunter2",)),
    ("Server=db;Uid=me;Pwd=hunter2;Port=1", ("hunter2",)),
    ("AccountName=x;AccountKey=aGVsbG8=;Suffix=y", ("aGVsbG8",)),
    ("the API key: hunter2", ("hunter2",)),
    ("access token = hunter2", ("hunter2",)),
    ("accesstoken=hunter2 clientSecret=hunter3 apikeys=hunter4", ("hunter2", "hunter3", "hunter4")),
    ("refresh_token=a,b!c~d", ("a,b", "c~d")),
    ("token=qzx&kwv", ("qzx", "kwv")),
    ('{"name": "Authorization", "value": "hunter2"', ("hunter2",)),
    ('headers [{"name":"X-Api-Key","value":"hunter2"}]', ("hunter2",)),
    # JSON as text
    (json.dumps({"a": json.dumps({"apiKey": "hunter2"})}), ("hunter2",)),
    (json.dumps({"a": json.dumps({"b": json.dumps({"token": "hunter2"})})}), ("hunter2",)),
    (json.dumps([{"value": "hunter2", "name": "Authorization"}]), ("hunter2",)),
]

_SECRET_NAMES = """
password Password user_password passwords userpassword dbPassword apiKey API_KEY x-api-key
apikeys api_keys access_token accessToken accesstoken access_tokens Authorization clientSecret
clientsecret client.secret secrets AWSSecretKey secretAccessKey sessionId otp private_key
privateKeys token authToken refresh_token id_token bearer_token cookies set-cookie credentials
passphrase jwt cvv ssn next_access_token github_token csrfToken x-auth-token signing_key auth
"""
SECRET_NAMES = _SECRET_NAMES.split()

_OPEN_NAMES = """
max_tokens maxTokens page_token pageToken next_page_token nextPageToken nextToken pin pinned
author path query monkey keyboard key keys sessionName opinion user secretary total_tokens
prompt_tokens token_type token_endpoint tokenizer token_count password_policy
authorization_endpoint syncToken progressToken continuationToken authority compass passport
secretName auth_method input_tokens
"""
OPEN_NAMES = _OPEN_NAMES.split()

VALUES: list[tuple[Any, tuple[str, ...]]] = [
    *(({name: "hunter2"}, ("hunter2",)) for name in SECRET_NAMES),
    ({"name": "Authorization", "value": "hunter2"}, ("hunter2",)),
    ({"key": "x-api-key", "value": "hunter2"}, ("hunter2",)),
    ([{"value": ["hunter2"], "name": "Cookie", "on": True}], ("hunter2",)),
    ({"headers": [["Authorization", "hunter2"], ["Host", "x"]]}, ("hunter2",)),
    ({"env": [{"name": "DB_PASSWORD", "value": "hunter2"}]}, ("hunter2",)),
    ({"a": [{"b": {"token": {"raw": "hunter2"}}}]}, ("hunter2",)),
    ({"body": '{"password": "hunter2"}'}, ("hunter2",)),
    ({"otp": 918273}, ("918273",)),
    *(({"note": text}, parts) for text, parts in TEXTS),
]

OPEN_TEXTS: list[str] = [
    "tokens: [12, 5, 7]",
    "the token is expired",
    "the password was changed yesterday",
    '<add key="Mode" value="fast2go"/>',
    "key: |\n  of the map",
    "the basic principles of biology",
    "Basic authentication and bearer tokens are described in the manual.",
    "The bearer certificates of the basic research programme",
    "pk_users_id_index",
    "sk_learn_pipeline_step_two",
    "sk-learn-contrib-package",
    "3f2504e0-4f89-11d3-9a0c-0305e82c3301",
    "da39a3ee5e6b4b0d3255bfef95601890afd80709",
    "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "Password: must be at least 8 characters long",
    "password: required",
    "token: string",
    "the token is invalid or expired",
    "The secret of good tea: patience and time",
    "Use the --token option to pass a token.",
    "max_tokens=512 page_token=abc123 next_page_token: def456",
    "https://example.com/@user/post",
    "https://localhost:3000/@fs/home/me",
    "https://registry.example/@scope/pkg?mail=a@b.example",
    "ssh://git@git.example/a.git",
    "mail me@example.com or you@example.com",
    "-----BEGIN CERTIFICATE-----\n" + BODY + "\n-----END CERTIFICATE-----",
    "a line like -----BEGIN PRIVATE KEY----- starts a key",
    "keyboard=qwerty monkey=see author: me, key: value",
    "2026-01-02T03:04:05Z GET /items?page=2&limit=10 200 12ms",
    "task-0123456789abcdef disk-usage risk_assessment",
    "key1=value1; key2=value2",
    "eyJ is how a token begins; eyJabc has no dots",
    "the session: 3 of 5",
    '{"max_tokens": 512, "key": "a", "page_token": "abc"}',
    "C:\\Users\\me\\token.txt and D:\\a\\b",
    "def token(self) -> str: ...",
    "http://[::1]:8080/a@b",
    "passed 12 tests, author=me",
    "give --header 'Authorization: Bearer …'",
    "set password=${DB_PASSWORD} or token=$TOKEN",
]

OPEN_VALUES: list[Any] = [
    *({name: "x"} for name in OPEN_NAMES),
    {"tokens": 512, "token": 7},
    {"password": None, "secret": "", "token": False},
    {"name": "Host", "value": "example.com"},
    {"name": "me", "key": "K", "value": "v"},
    *({"note": text} for text in OPEN_TEXTS),
]
