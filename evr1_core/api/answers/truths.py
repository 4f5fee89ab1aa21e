"""The truth value that an answer states."""

from __future__ import annotations

import re

from evr1_core.api.answers.extraction import Mode
from evr1_core.api.answers.text import plain

_TRUE = ("yes", "true", "1", "correct", "是", "是的", "はい")
_FALSE = ("no", "false", "0", "incorrect", "否", "不是", "いいえ")
VALUES = {**dict.fromkeys(_TRUE, True), **dict.fromkeys(_FALSE, False)}
LETTERS = {"y": True, "n": False}  # only as the whole answer
_CLAUSE_END = re.compile(r"[.,;:!?\n。、()\[\]\"“”]|—|–| - ")
_JOINED = re.compile(r"(?:and|or|but|also|maybe|perhaps|however|though|although)\s+")
_CUE = re.compile(
    r"(?:\banswer\b(?: is)? ?[:=]?|答案(?:是|为)? ?:?) ?(yes|no|true|false|correct|incorrect|是|否)(?=$|[.,;!\n。])", re.IGNORECASE
)
_WORD = re.compile(r"[^\W_]+")


def truth(text: str | None, *, mode: Mode = "strict") -> bool | None:
    """True or False, or None when ``text`` (an extracted answer) states neither, or both.

    Strict: the first word is a truth word, followed by nothing or by punctuation, and no later clause is the opposite word alone;
    or a cue ("the answer is yes") is. Lenient: the last cue, else the first word, else the only one of yes and no that occurs.
    """
    candidate = plain(text or "").casefold()
    if not candidate:
        return None
    return _lenient(candidate) if mode == "lenient" else _strict(candidate)


def _strict(text: str) -> bool | None:
    clauses = [
        _JOINED.sub("", clause.strip(), count=1) if i else clause.strip() for i, clause in enumerate(_CLAUSE_END.split(text))
    ]
    clauses = [clause for clause in clauses if clause]
    if not clauses:
        return None
    stated = {VALUES[clause] for clause in clauses if clause in VALUES}
    cued = {VALUES[m[1]] for m in _CUE.finditer(text)}
    if len(clauses) == 1 and clauses[0] in LETTERS:
        return LETTERS[clauses[0]]
    if clauses[0] in VALUES:
        return VALUES[clauses[0]] if len(stated | cued) == 1 else None
    return cued.pop() if len(cued) == 1 else None


def _lenient(text: str) -> bool | None:
    cued = [VALUES[m[1]] for m in _CUE.finditer(text)]
    if cued:
        return cued[-1]
    words = _WORD.findall(text)
    if not words:
        return None
    if len(words) == 1 and words[0] in LETTERS:
        return LETTERS[words[0]]
    if words[0] in VALUES:
        return VALUES[words[0]]
    named = {word for word in words if word in ("yes", "no")}
    return VALUES[named.pop()] if len(named) == 1 else None
