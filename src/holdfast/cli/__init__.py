"""The command line: ``holdfast``.

main.py         the entrance: all verbs, and help at once; everything else when needed
app.py          click: options, how a verb is found and run, errors as exit codes
verbs/          one module for each group of verbs
target.py       the server of a command: a name, a URL, or a command after ``--``
guide.py        the guide for agents and the man page

output.py       stdout, stderr and files: text, JSON, errors and their exit codes
views.py        tools, tables and contents of results: for a person, a pipe, or as JSON
progress.py     the status line: what is waited for, how long, how far

arguments.py    tools by name, ``name=value`` and its relatives by a tool's schema
elicitation.py  questions at the terminal: approvals, logins, what a server asks
tool_cache.py   tools that servers were last seen to offer; ``tools NAME --offline`` at once
completers.py   what Tab offers
"""
