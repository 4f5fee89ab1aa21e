"""Explicit cues ("the answer is (C)") and lists of letters ("A, C"): the part of the letter rules that reads phrases."""

from __future__ import annotations

import re

from evr1_core.api.answers.options import Options

Found = frozenset[str] | None  # the empty set: named, but no valid choice; None: nothing was named
NOTHING: frozenset[str] = frozenset()

ENDS = r"(?![A-Za-z0-9_]|['’-][A-Za-z0-9])"
_CUE = re.compile(
    r"(?P<no>\b(?:wrong|incorrect|bad|not the|not an|not a) )?"
    r"(?:\b(?:final|best|correct|right|only) )?"
    r"(?:\b(?:answer|(?:(?<=correct )|(?<=best )|(?<=right ))(?:option|choice))\b(?: (?:option|choice|letter)\b)?"
    r"(?: to (?:the|this) question)?(?P<link> ?(?:(?:is|are|was|would be|should be|must be|will be)\b)? ?[:=]?)"
    r"|(?:答案|正确选项|正確選項|故选|应选|答え)(?P<linked> ?(?:应该是|应为|是|为|為|は)? ?:?))"
    r"[ \n]?",
    re.IGNORECASE,
)
_CHOICE = re.compile(
    rf"(?:(?:the )?(?:option|choice|letter) |选项 ?|選項 ?)?[(\[<\"'“‘「【]{{0,3}}(?P<letter>[A-Za-z]){ENDS}", re.IGNORECASE
)
_CLOSED = re.compile(r"[)\]>\"'”’」】]{0,3} ?(?:$|[.,;:!。、)\n])|[)\]>」】]")
MORE = re.compile(
    rf"[)\]]? ?(?P<link>,|;|、|&|/|\||\band\b|\bor\b|或|和)(?: ?(?P<link2>and|or)\b)?"
    r"(?: (?:maybe|perhaps|possibly|even)\b)? ?(?:option |choice )?[(\[]?"
    rf"(?P<letter>[A-Z]){ENDS}[)\]]?"
)
_RUN = re.compile(r"[)\]]{0,3} ?[.(\[]{0,2}(?P<letter>[A-Z])[)\]]{0,3}(?= ?(?:$|[.,;()\n]))")  # "(A)(B)", "A B", "A.B.C"
_IS_ANSWER = re.compile(
    r"(?:option |choice )?[(\[]?([A-Z])[)\]]? is (?:the )?(?:correct|right|best)(?: (?:answer|option|choice))?(?=$|[.,;!\n])",
    re.IGNORECASE,
)
_BECAUSE = re.compile(r" (?:because|since|as|so|which|but|for|due|based|given|and it)\b")


def _one(letter: str, choices: Options) -> frozenset[str]:
    return frozenset({letter}) if letter in choices.labels else NOTHING


def conclusions(text: str, choices: Options) -> list[frozenset[str]]:
    """What each explicit cue concludes, in order."""
    found = []
    for cue in _CUE.finditer(text):
        if cue["no"]:
            continue
        concluded = _after_cue(text, cue.end(), bool((cue["link"] or cue["linked"] or "").strip()), choices)
        if concluded is not None:
            found.append(concluded)
    first = _IS_ANSWER.match(text)
    if first:
        found.insert(0, _one(first[1].upper(), choices))
    return found


def _after_cue(text: str, start: int, linked: bool, choices: Options) -> Found:
    choice = _CHOICE.match(text, start)
    if choice is None:
        return _text_after_cue(text, start, choices)
    letter, end = choice["letter"], choice.end()
    closed = _CLOSED.match(text, end) is not None
    if not closed and (by_text := _text_after_cue(text, start, choices)) is not None:
        return by_text
    if not closed and (letter.islower() or not linked):
        return None
    if not closed and letter in "AI" and re.match(r" [a-z]", text[end : end + 2]) and not _BECAUSE.match(text, end):
        more = MORE.match(text, end)
        return None if more is None else listed(text, end, letter, choices)
    return listed(text, end, letter.upper(), choices)


def _text_after_cue(text: str, start: int, choices: Options) -> Found:
    longest = max(map(len, choices.texts), default=0) + 8  # blanks and end punctuation beside the text
    line = text[start : start + 2 * longest].partition("\n")[0]
    for part in (line, line.partition(". ")[0]):
        if (label := choices.by_text(part)) is not None:
            return frozenset({label})
    return None


def listed(text: str, start: int, letter: str, choices: Options) -> frozenset[str]:
    """The letter, with those that a list adds to it; nothing when the list offers alternatives, has nothing between its letters, or
    runs into prose.
    """
    letters, end = {letter}, start
    if (run := _RUN.match(text, start)) is not None and run["letter"] in choices.labels:
        return NOTHING
    while (more := MORE.match(text, end)) is not None and more["letter"] in choices.labels:
        if {more["link"].lower(), (more["link2"] or "").lower()} & {"or", "/", "|", "或"}:
            return NOTHING
        letters.add(more["letter"])
        end = more.end()
    if end > start and re.match(r" ?(?:$|[.!。\n])", text[end : end + 2]) is None:
        return NOTHING
    return frozenset(letters) if letters <= set(choices.labels) else NOTHING
