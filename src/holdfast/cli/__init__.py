"""The command line: ``holdfast``.

main.py         the entrance: help at once, everything else when needed
app.py          click: find a verb, run it, turn errors into exit codes
table.py        all verbs, each with the line that help has about it
verbs/          one module for each group of verbs
target.py       the server of a command: a name, a URL, or a command after ``--``
options.py      the options that every verb about a server has
exit_codes.py   the exit codes
guide.py        the guide for agents and the man page

output.py       stdout, stderr and files: text, JSON, errors
views.py        tools, resources, prompts: for a person, a pipe, or as JSON
contents.py     contents of results: text as text, the rest as files
render.py       tables
progress.py     the status line: what is waited for, how long, how far

arguments.py    ``name=value`` and its relatives, read by a tool's schema
elicitation.py  a server's questions, asked at the terminal
advice.py       likely causes of a failure                                      (pure)
tool_cache.py   tools that servers were last seen to offer
offline.py      ``tools NAME --offline`` from there, at once
find_tool.py    tools by their names, and those near them
completers.py   what Tab offers
"""
