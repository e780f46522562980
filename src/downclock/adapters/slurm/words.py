"""The comment of a job: what its owner tells us there, and what we tell its node.

Owners write words such as ``downclock=off`` or ``downclock=app:train,run:90m,deadline:+6h``
anywhere in their comment. We put one line before it:

    downclock core_mhz=1005 memory_mhz=877 start=1794882376 nodes=node2 reason=... | theirs

Slurm changes a job's comment, start, nodes and clocks in one step, so that a comment equal to the
one we want says that all of it is done.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from downclock.problem.calendar import seconds_of

MARK, BETWEEN = "downclock", " | "
LEFT = "left=1"
"""Our word in comments of jobs that were left to Slurm: they are not planned again."""

RAN = "ran=1"
"""Our word in comments of jobs that are held because they ran already."""

FREE = "free="
"""Our word in comments of jobs that were seen free, with how often they had been requeued then. A
controller that is killed forgets it with the release, or neither: whoever holds the job after that
means it."""

MOST_BYTES = 1000
"""Slurm refuses comments of more than 1,024 bytes."""


@dataclass(frozen=True, slots=True)
class Wish:
    """What an owner asks for.

    Attributes:
        off: the job is not to be touched.
        tagged: the owner, or the site's submit plugin, wants it planned.
        waits: the plugin has delayed it for us: its begin is not its owner's.
        application: of the library, or an archetype; empty: not said.
        run_s: how long it runs at default clocks; None: not said.
        deadline_s: when it must end, after it was submitted; None: not said.
        wrong: a word that cannot be read; empty: none.
    """

    off: bool = False
    tagged: bool = False
    waits: bool = False
    application: str = ""
    run_s: float | None = None
    deadline_s: float | None = None
    wrong: str = ""


def owners_part(comment: str) -> str:
    """Return the owner's own comment."""
    if not is_ours(comment):
        return comment
    return comment.partition(BETWEEN)[2]


def our_part(comment: str) -> str:
    """Return our line of a comment; empty: there is none."""
    return comment.partition(BETWEEN)[0].strip() if is_ours(comment) else ""


def is_ours(comment: str) -> bool:
    """Tell whether we wrote the beginning of a comment."""
    return comment.startswith(f"{MARK} ")


def told_start_s(comment: str) -> float:
    """Return the start that our line tells, in seconds since 1970; infinite: none."""
    words = [word.removeprefix("start=") for word in our_part(comment).split() if "start=" in word]
    return float(words[0]) if words and words[0].isdecimal() else math.inf


def without_free(line: str) -> str:
    """Return our line without the word that says that the job was seen free."""
    return " ".join(word for word in line.split() if not word.startswith(FREE))


def wish_of(comment: str) -> Wish:
    """Read the words for us in a comment; what is not for us is not looked at."""
    words = [word for word in owners_part(comment).split() if word.startswith(f"{MARK}=")]
    wish = Wish(tagged=bool(words))
    for word in words:
        for part in word.removeprefix(f"{MARK}=").split(","):
            wish = _wished(wish, part)
    return wish


def _wished(wish: Wish, part: str) -> Wish:
    """Take note of one word; the first that cannot be read is kept."""
    key, _, value = part.partition(":")
    try:
        if part in ("plan", "off", "wait"):
            return replace(wish, off=wish.off or part == "off", waits=wish.waits or part == "wait")
        if key == "app" and value:
            return replace(wish, application=value)
        if key == "run":
            return replace(wish, run_s=_positive(value))
        if key == "deadline":
            return replace(wish, deadline_s=_positive(value.removeprefix("+")))
    except ValueError:
        pass
    return replace(wish, wrong=wish.wrong or part[:40])


def _positive(text: str) -> float:
    seconds = seconds_of(text)
    if not 0.0 < seconds < 1e9:
        raise ValueError
    return seconds


def comment_of(words: dict[str, str], reason: str, owner: str) -> str:
    """Return our line and what fits of the owner's comment, on one line."""
    line = " ".join([MARK, *(f"{key}={value}" for key, value in words.items())])
    return _joined(f"{line} reason={'-'.join(one_line(reason).replace('|', '/').split())}", owner)


def restored(comment: str, submitted: str) -> str:
    """Return the owner's comment as it was submitted, or as the owner has changed it since."""
    line = our_part(comment)
    if not line:
        return comment
    return submitted if _joined(line, submitted) == comment else owners_part(comment)


def _joined(line: str, owner: str) -> str:
    """Our line and what fits of the owner's comment, words for us first."""
    words = one_line(owner).split()
    kept = " ".join(sorted(words, key=lambda word: not word.startswith(f"{MARK}=")))
    whole = f"{line}{BETWEEN}{kept}" if kept else line
    return whole.encode("utf-8", "replace")[:MOST_BYTES].decode("utf-8", "ignore").strip()


def one_line(text: str) -> str:
    """Return text as one line of printable letters."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())
