"""Files as hosts and people write them: 49 of all hosts, each with the trouble that it has."""

from __future__ import annotations

from typing import Final, NamedTuple


class Sample(NamedTuple):
    host: str
    text: str
    is_exact: bool = True
    """True if the text alone leads back to its bytes, without a backup."""
    file: str = "mcp.json"

    @property
    def data(self) -> bytes:
        return self.text.encode()


TOML, YAML = "config.toml", "config.yaml"

SAMPLES: Final[dict[str, Sample]] = {
    # Claude Code writes its file by itself, two spaces, with everything else in it.
    "claude-code": Sample(
        "claude-code",
        """{
  "numStartups": 184,
  "tipsHistory": {"new-user-warmup": 3},
  "mcpServers": {
    "git": {
      "type": "stdio",
      "command": "uvx",
      "args": [
        "mcp-server-git"
      ],
      "env": {}
    },
    "remote": {
      "type": "http",
      "url": "https://example.org/mcp"
    }
  },
  "projects": {
    "/home/me/a": {
      "allowedTools": [],
      "mcpServers": {
        "db": {
          "type": "stdio",
          "command": "npx",
          "args": ["-y", "db-server", "${DB_URL:-none}"],
          "env": {"DB_TOKEN": "s3cr3t-s3cr3t"}
        }
      }
    },
    "/home/me/b": {"mcpServers": {}}
  }
}
""",
    ),
    "claude-code-bare": Sample(
        "claude-code", '{"mcpServers": {"a": {"command": "a-server"}}}', is_exact=False
    ),
    "claude-code-project": Sample(
        "claude-code",
        '{\n\t"mcpServers": {\n\t\t"a": {\n\t\t\t"command": "./run.sh",\n'
        '\t\t\t"args": []\n\t\t}\n\t}\n}',
        file=".mcp.json",
    ),
    "claude-code-minified": Sample(
        "claude-code",
        '{"x":1,"mcpServers":{"a":{"command":"a","args":["b","c"],"env":{"K":"v"}}},"y":[1,2]}',
    ),
    "claude-code-long-history": Sample(
        "claude-code",
        '{"history": [' + ", ".join(f'"line {n} {{}} [] //"' for n in range(2000)) + "],\n"
        ' "mcpServers": {"a": {"command": "a", "args": ["b"]}}}\n',
    ),
    "cursor": Sample(
        "cursor",
        """{
  "mcpServers": {
    "files": {
      "command": "npx",
      "args": ["-y", "@modelcontextprotocol/server-filesystem", "/home/me"]
    }
  }
}
""",
    ),
    "cursor-comments": Sample(
        "cursor",
        """// mine
{
  /* all of them */
  "mcpServers": {
    // the first
    "a": { // here
      "command": /* this */ "npx", // and why
      "args": [ // arguments
        "-y", // yes
        /* the package */ "pkg" // last
      ], // done
    }, // end
  },
}
// bye
""",
    ),
    "cursor-crlf": Sample(
        "cursor",
        '{\r\n  "mcpServers": {\r\n    "a": {\r\n      "command": "a",\r\n      "args": [\r\n'
        '        "b"\r\n      ]\r\n    }\r\n  }\r\n}\r\n',
    ),
    "cursor-crlf-no-args": Sample(
        "cursor",
        '{\r\n  "mcpServers": {\r\n    "a": {\r\n      "command": "a"\r\n    }\r\n  }\r\n}\r\n',
        is_exact=False,
    ),
    "cursor-tabs": Sample(
        "cursor",
        '{\n\t"mcpServers": {\n\t\t"a":\t{"command":\t"a",\t"args":\t[\t"b"\t]\t}\n\t}\n}\n',
    ),
    "cursor-bom": Sample(
        "cursor", '\ufeff{"mcpServers": {"a": {"command": "a", "args": ["b"]}}}\n'
    ),
    "cursor-no-final-newline": Sample(
        "cursor", '{"mcpServers": {\n  "a": {"command": "a", "args": ["b"]}}}'
    ),
    "cursor-blank-lines": Sample(
        "cursor",
        '\n\n{\n\n\n  "mcpServers":   {\n\n    "a":  {  "args" : [ "b" , "c" ] , '
        '"command" : "a"  }\n'
        "\n\n  }\n\n}\n\n\n",
    ),
    "cursor-trailing-commas": Sample(
        "cursor", '{"mcpServers": {"a": {"args": ["x", "y",], "command": "a",},},}\n'
    ),
    "cursor-escapes": Sample(
        "cursor",
        '{"mcpServers": {"\\u0061\\u00e9": {"command": "caf\\u00e9\\/run", "args": ["\\"", "\\\\", '
        '"日本", "// no comment", "/* nor this */", "[", "{"]}}}\n',
    ),
    "cursor-many": Sample(
        "cursor",
        '{"mcpServers": {\n'
        + ",\n".join(f'  "s{n}": {{"command": "c{n}", "args": ["a{n}"]}}' for n in range(60))
        + "\n}}\n",
    ),
    "cursor-unknown-fields": Sample(
        "cursor",
        """{
  "mcpServers": {
    "a": {
      "name": "A",
      "disabled": true,
      "autoApprove": ["x"],
      "command": "docker",
      "args": ["run", "--rm", "-i", "-e", "TOKEN", "image:1.2"],
      "env": {"TOKEN": "abc"},
      "cwd": "/srv",
      "future": {"command": "no", "args": ["no"]}
    }
  },
  "command": "not a server",
  "other": {"mcpServers": {"nor": {"command": "this"}}}
}
""",
    ),
    "vscode": Sample(
        "vscode",
        """{
\t"inputs": [
\t\t{"type": "promptString", "id": "key", "description": "Key", "password": true}
\t],
\t"servers": {
\t\t"github": {
\t\t\t"url": "https://example.org/mcp/"
\t\t},
\t\t"python": {
\t\t\t"type": "stdio",
\t\t\t"command": "${workspaceFolder}/.venv/bin/python",
\t\t\t"args": ["-m", "server", "--key=${input:key}"],
\t\t\t"envFile": "${workspaceFolder}/.env",
\t\t\t"dev": {"watch": "src/**"}
\t\t}
\t}
}
""",
    ),
    "vscode-comments": Sample(
        "vscode",
        '{\n  // "servers": {},\n  "servers": {"a": {"command": "a", "args": ["b",]},},\n}',
    ),
    "vscode-args-first": Sample(
        "vscode", '{"servers": {"a": {"args": ["b"], "type": "stdio", "command": "a"}}}'
    ),
    "codex": Sample(
        "codex",
        """model = "gpt"
approval_policy = "on-request"

[mcp_servers.git]
command = "uvx"
args = ["mcp-server-git"]

[mcp_servers.git.env]
TOKEN = "abc"

[mcp_servers.remote]
url = "https://example.org/mcp"

[projects."/home/me/a"]
trust_level = "trusted"
""",
        file=TOML,
    ),
    "codex-bare": Sample(
        "codex", '[mcp_servers.a]\ncommand = "a" # why\n', is_exact=False, file=TOML
    ),
    "codex-crlf": Sample(
        "codex",
        '# mine\r\n[mcp_servers.a]\r\ncommand = "a"\r\nargs = [\r\n    "b", # b\r\n'
        '    "c",\r\n]\r\n',
        file=TOML,
    ),
    "codex-inline": Sample(
        "codex",
        'mcp_servers = { a = { command = "a", args = ["b"] }, b = { command = \'b\', args = [] } }',
        file=TOML,
    ),
    "codex-inline-bare": Sample(
        "codex", '[mcp_servers]\na = {command="a"}\n', is_exact=False, file=TOML
    ),
    "codex-dotted": Sample(
        "codex",
        'mcp_servers.a.command = "a"\nmcp_servers.a.args = ["b"]\nmcp_servers."b c".args=[]\n'
        "mcp_servers.\"b c\".command='c'\nmodel = 'x'\n",
        file=TOML,
    ),
    "codex-dotted-bare": Sample("codex", 'mcp_servers.a.command = "a"', is_exact=False, file=TOML),
    "codex-strings": Sample(
        "codex",
        "[mcp_servers.'quoted name']\n"
        "command = '''C:\\Tools\\run.exe'''\n"
        'args = ["""multi\nline""", \'lit"eral\', "esc\\"aped # no comment", """""", \'\']\n',
        file=TOML,
    ),
    "codex-decoys": Sample(
        "codex",
        'note = """\n[mcp_servers.decoy]\ncommand = "evil"\n"""\n# [mcp_servers.b]\n'
        '[ mcp_servers . a ] # spaced\ncommand="a"\nargs=["x",]\n'
        '[[history]]\ncommand = "no"\n[[history]]\ncommand = "no"\nwhen = 2026-01-02T03:04:05Z\n',
        file=TOML,
    ),
    "codex-no-final-newline": Sample(
        "codex", '[mcp_servers.a]\nargs = ["b"]\ncommand = "a"', file=TOML
    ),
    "codex-indented": Sample(
        "codex",
        '[mcp_servers]\n  [mcp_servers.a]\n  \tcommand = "a"\n  \targs = [ "b" ]\n',
        file=TOML,
    ),
    "gemini": Sample(
        "gemini",
        """{
  "theme": "Default",
  "mcpServers": {
    "a": {"command": "node", "args": ["$HOME/a.js"], "timeout": 30000, "trust": false},
    "b": {"httpUrl": "https://example.org/mcp"},
    "c": {"url": "https://example.org/sse"}
  }
}
""",
        file="settings.json",
    ),
    "gemini-comments": Sample(
        "gemini",
        '{\n  // theme\n  "theme": "x", "mcpServers": {"a": {"args":["b"],"command":"a"}}\n}',
        file="settings.json",
    ),
    "claude-desktop": Sample(
        "claude-desktop",
        """{
  "globalShortcut": "",
  "mcpServers": {
    "files": {
      "command": "C:\\\\Program Files\\\\nodejs\\\\npx.cmd",
      "args": [
        "-y",
        "@modelcontextprotocol/server-filesystem",
        "C:\\\\Users\\\\me"
      ]
    }
  }
}""",
    ),
    "claude-desktop-crlf-bom": Sample(
        "claude-desktop",
        '\ufeff{\r\n  "mcpServers": {\r\n    "a": {\r\n      "command": "cmd",\r\n'
        '      "args": ["/c", "npx", "-y", "a"]\r\n    }\r\n  }\r\n}',
    ),
    "windsurf": Sample(
        "windsurf",
        '{\n  "mcpServers": {\n    "a": {"command": "a", "args": ["b"], "env": {}},\n'
        '    "r": {"serverUrl": "https://example.org/mcp"}\n  }\n}\n',
    ),
    "zed": Sample(
        "zed",
        """// Zed settings
//
// For information on how to configure Zed, see the documentation.
{
  "ui_font_size": 16,
  "context_servers": {
    "a": {
      "source": "custom",
      "enabled": true,
      "command": "uvx",
      "args": ["a"],
      "env": {},
    },
    "from-extension": {"source": "extension", "settings": {"key": "x"}},
  },
}
""",
        file="settings.json",
    ),
    "zed-before-2025": Sample(
        "zed",
        '{"context_servers": {"a": {"command": {"path": "npx", "args": ["-y", "a"], "env": null}, '
        '"settings": {}}}}\n',
        file="settings.json",
    ),
    "copilot": Sample(
        "copilot",
        """{
  "mcpServers": {
    "a": {
      "type": "local",
      "command": "npx",
      "tools": ["*"],
      "args": ["-y", "a"]
    },
    "b": {"type": "http", "url": "https://example.org/mcp", "headers": {}, "tools": ["*"]}
  }
}
""",
    ),
    "kiro": Sample(
        "kiro",
        '{\n    "mcpServers": {\n        "a": {\n            "command": "uvx",\n'
        '            "args": [\n'
        '                "a@latest"\n            ],\n            "disabled": false,\n'
        '            "autoApprove": []\n        }\n    }\n}\n',
    ),
    "opencode": Sample(
        "opencode",
        """{
  "$schema": "https://example.org/config.json",
  "mcp": {
    "a": {
      "type": "local",
      "command": ["npx", "-y", "a"],
      "environment": {"KEY": "{env:KEY}"},
      "enabled": true,
    },
    "b": {"type": "remote", "url": "https://example.org/mcp"},
  },
}
""",
        file="opencode.jsonc",
    ),
    "opencode-2": Sample(
        "opencode",
        '{"mcp": {"servers": {"a": {"type": "local", "command": [\n  "a" // one\n]}}}}',
        file="opencode.json",
    ),
    "goose": Sample(
        "goose",
        """GOOSE_PROVIDER: anthropic
# extensions of mine
extensions:
  developer:
    bundled: true
    enabled: true
    type: builtin
    name: developer
  files:
    enabled: true
    type: stdio
    name: files
    cmd: npx   # the launcher
    args:
    - -y
    # the package
    - '@modelcontextprotocol/server-filesystem'
    - /home/me
    envs: {}
    timeout: 300
  remote:
    type: streamable_http
    uri: https://example.org/mcp
keyring: true
""",
        file=YAML,
    ),
    "goose-deeper": Sample(
        "goose",
        "extensions:\n    a:\n        enabled: true\n        config:\n            type: stdio\n"
        "            cmd: a\n            args:\n                - b\n                - 'c d'\n",
        file=YAML,
    ),
    "goose-flow": Sample(
        "goose",
        'extensions: {a: {type: stdio, cmd: "a", args: [b, "c"], envs: {K: v}}, b: {uri: "x"}}',
        file=YAML,
    ),
    "goose-bare": Sample(
        "goose", "extensions:\n  a:\n    type: stdio\n    cmd: a\n    timeout: 30\n", file=YAML
    ),
    "goose-crlf": Sample(
        "goose",
        "extensions:\r\n  a:\r\n    cmd: a\r\n    args:\r\n      - b\r\n    type: stdio\r\n",
        file=YAML,
    ),
    "goose-lines": Sample(
        "goose",
        "extensions:\n  a:\n    cmd: >-\n      cmd-a\n    args:\n      - |\n        b\n        c\n"
        "      - d\n\n  b:\n    cmd: |-\n      cmd-b\n\n# end\n",
        is_exact=False,
        file=YAML,
    ),
    "goose-empty-args": Sample(
        "goose", "extensions:\n  a:\n    type: stdio\n    cmd: a\n    args: []\n", file=YAML
    ),
}
