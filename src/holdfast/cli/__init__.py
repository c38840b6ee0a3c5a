"""The command line: ``holdfast``.

main.py         the entry point: the table of verbs, help and version; imports the rest when needed
app.py          click: options, how a verb is found and run, errors as exit codes
verbs/          one module for each group of verbs
target.py       the server of a command: a name, a URL, a script, or a command after ``--``
guide.py        the guide for agents and the man page

output.py       stdout, stderr and files: text, JSON, errors and their exit codes
views.py        tools, tables and contents of results: for a person, a pipe, or as JSON
progress.py     the status line: what the command waits for, how long, how far
audit_file.py   records of calls, for ``serve --audit``

arguments.py    ``name=value`` and other forms, converted by a tool's schema
elicitation.py  questions at the terminal: approvals, logins, elicitation
tool_cache.py   cached tool lists, for completion and ``tools NAME --offline``
completers.py   shell completion
"""
