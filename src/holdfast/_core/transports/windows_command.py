r"""A command as Windows wants it: which file to start, and the one string that holds the arguments.

Nothing here asks the system: the same code runs, and is tested, everywhere.

A program on Windows is not given words but one string, and takes it apart itself. Almost all do it
as Microsoft's C runtime does ("Parsing C command-line arguments"): spaces separate, quotes hold
together, ``\"`` is a quote, and backslashes mean themselves unless a quote follows. `quoted` is the
inverse of that.

``npx``, ``npm``, ``yarn`` and most other launchers are batch files, and a batch file is started by
``cmd.exe``, which reads the same string by other rules before the program ever sees it. An argument
such as ``"&calc.exe`` ends the quotation and starts a second program. Windows runs ``cmd.exe`` for
a batch file even if nobody asks for it, so that most languages had this hole until 2024 (BatBadBut,
CVE-2024-24576). What `batch_line` does about each character:

========== ========================================================================================
``& | < >`` Mean nothing inside of quotes. Every argument is in quotes, and none can leave them:
``( ) ^``   see the next row.
``"``       Doubled. For ``cmd.exe`` the quotation ends and begins again, with nothing between; for
            the C runtime two quotes in a quotation are one. ``\"`` would mean a quote to the one
            and the end of the quotation to the other.
``%``       Expands inside of quotes as well, and cannot be escaped on a command line. It becomes
            ``%%cd:~,%``: a percent sign, and then zero characters of the variable ``cd``. The text
            that a batch file gets by ``%*`` is not expanded again.
``!``       Would expand if somebody turned on delayed expansion in the registry: ``/v:off``.
line ends   End the command, whatever the quotes. There is no way to pass one on: refused.
NUL         Ends the string: refused.
========== ========================================================================================

``/d`` keeps the commands of the registry's AutoRun away; ``/e:on`` is what ``%cd:~,%`` needs;
``/s`` makes ``cmd.exe`` take away the first quote and the last one, and no others.

A name that ends in dots or spaces is the same file without them, and ``server.bat .`` is a batch
file (CVE-2024-43402): the ending is looked at without them.
"""

from __future__ import annotations

import ntpath
from collections.abc import Callable, Sequence
from typing import Final

_STARTABLE: Final = (".com", ".exe", ".bat", ".cmd")
"""The endings that Windows can start: ``.exe`` itself, ``.bat`` by ``cmd.exe``."""
_DEFAULT_PATHEXT: Final = ".COM;.EXE;.BAT;.CMD"


def find_program(
    program: str, path: str, pathext: str, is_file: Callable[[str], bool]
) -> str | None:
    """Return the file that a name means on Windows; None if there is none.

    Unlike Windows itself this never looks into the current folder, which may be a stranger's
    repository.

    Args:
        program: A name, or a path with or without an ending.
        path: The folders to look in, as in ``PATH``.
        pathext: The endings to try, as in ``PATHEXT``.
        is_file: Says whether a path is a file.
    """
    names = _file_names(program, pathext or _DEFAULT_PATHEXT)
    if ntpath.dirname(program) or ntpath.splitdrive(program)[0]:
        return next(filter(is_file, names), None)
    folders = [folder.strip().strip('"') for folder in path.split(";")]
    # An empty or relative one would be the current folder again.
    absolute = [
        folder for folder in folders if ntpath.splitdrive(folder)[0] and ntpath.isabs(folder)
    ]
    candidates = (ntpath.join(folder, name) for folder in absolute for name in names)
    return next(filter(is_file, candidates), None)


def _file_names(program: str, pathext: str) -> list[str]:
    """Return the names that a program's file may have, by the endings in ``PATHEXT``."""
    if ntpath.splitext(_trimmed(program))[1].lower() in _STARTABLE:
        return [program]
    endings = [ending.strip().lower() for ending in pathext.split(";")]
    return [*(program + ending for ending in endings if ending in _STARTABLE), program]


def command_line(file: str, arguments: Sequence[str], cmd: str) -> tuple[str, str]:
    """Return the file to start and its command line.

    Args:
        file: The program, as `find_program` found it.
        arguments: The words that it is to see.
        cmd: The path of ``cmd.exe``.

    Raises:
        ValueError: A word cannot be passed on; the message says which and why.
    """
    for word in (file, *arguments):
        if "\0" in word:
            raise ValueError(f"the argument {word!r} has a NUL in it, which ends the command line")
    if is_batch(file):
        return cmd, batch_line(file, arguments, cmd)
    return file, " ".join(quoted(word) for word in (file, *arguments))


def is_batch(file: str) -> bool:
    """Return whether Windows runs a file by ``cmd.exe``."""
    return ntpath.splitext(_trimmed(file))[1].lower() in (".bat", ".cmd")


def _trimmed(file: str) -> str:
    """Return a name without what Windows leaves off at its end."""
    return file.rstrip(" .")


def quoted(word: str) -> str:
    r"""Return a word as the C runtime reads it back; in quotes only if it needs them."""
    if word and not any(character in ' \t\n\v"' for character in word):
        return word
    return f'"{_backslashed(word, chr(92) + chr(34))}"'


def batch_line(script: str, arguments: Sequence[str], cmd: str = "cmd.exe") -> str:
    """Return the command line by which ``cmd.exe`` runs a batch file with arguments.

    Raises:
        ValueError: A word has a line end in it, or the file's name a quote.
    """
    if '"' in script:
        raise ValueError(f"the name of the batch file {script!r} has a quote in it")
    words = []
    for word in (script, *arguments):
        if "\n" in word or "\r" in word:
            raise ValueError(f"the argument {word!r} has a line end in it: batch files take none")
        words.append(f'"{_backslashed(word, chr(34) * 2)}"'.replace("%", "%%cd:~,%"))
    return f'{quoted(cmd)} /e:on /v:off /d /s /c "{" ".join(words)}"'


def _backslashed(word: str, quote: str) -> str:
    """Write each quote in another way, with backslashes before it, and at the end, doubled."""
    text, backslashes = "", 0
    for character in word:
        if character == '"':
            text += "\\" * backslashes + quote
        else:
            text += character
        backslashes = backslashes + 1 if character == "\\" else 0
    return text + "\\" * backslashes
