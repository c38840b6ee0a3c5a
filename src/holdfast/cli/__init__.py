"""The command line: ``holdfast``.

main.py         the entrance: help at once, everything else when needed
verbs.py        the table of verbs: where each lives, what it says of itself
app.py          click: finds a verb, runs it, turns errors into exit codes
aim.py          which server is meant: a name, a URL, or a command after ``--``
options.py      the options that every verb about a server has
exits.py        the exit codes

output.py       what goes to stdout and stderr, and how
views.py        what servers have, for a person, a pipe, or as JSON
contents.py     text as text, the rest as files
render.py       tables
progress.py     a bar
files.py        files that are written whole or not at all

arguments.py    ``k=v`` and its relatives, read by a tool's schema               (pure)
asking.py       a server's questions, at the terminal
symptoms.py     what a failure usually means                                    (pure)
manifests.py    what servers were last seen to offer; seen.py looks there
suggest.py      what Tab offers; completion.py the script for the shell
editor.py       the line editor of shell.py

The other modules are verbs.
"""
