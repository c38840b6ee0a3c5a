"""The command line: ``holdfast``.

main.py        the entrance: help at once, everything else when needed
verbs.py       the table of verbs: where each lives, what it says of itself
app.py         click: finds a verb, runs it, turns errors into exit codes
aim.py         which server is meant: a name, a URL, or a command after ``--``
arguments.py   ``k=v`` and its relatives, read by a tool's schema               (pure)
output.py      what goes to stdout and stderr, and how
exits.py       the exit codes
"""
