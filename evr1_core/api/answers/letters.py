"""The option letter that an answer chooses: the rules shared by multiple choice, mathematics and evaluation.

A rule gives a set of letters, the empty set for "named, but no valid choice" (which ends the search), or None for "does not apply".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from evr1_core.api.answers.cues import ENDS, MORE, NOTHING, Found, conclusions, listed
from evr1_core.api.answers.extraction import Mode
from evr1_core.api.answers.options import Options, read_options
from evr1_core.api.answers.text import END_MARKS, fold, plain

_ALONE = re.compile(
    r"(?:(?:the )?(?:option|choice|answer|letter) )?[(\[<\"'“‘「【]{0,3}([A-Za-z])[)\]>\"'”’」】]{0,3}[.:,]?", re.IGNORECASE
)
_EITHER = re.compile(rf"\bor (?:\w+ )?[(\[]?(?P<letter>[A-Z]){ENDS}(?! [a-z])")
_LABELLED = re.compile(r"(?:[(\[]([A-Z])[)\]]|([A-Z])(?:[.:](?![A-Z]\.)|[)\]、]))[ \n]?")
_SMALL_LABEL = re.compile(r"(?:[(\[]([a-z])[)\]]|([a-z])[.:)\]、])[ \n]?")
_LEADING = re.compile(r"([A-Z]) (?=[a-z])")
_DENIED = re.compile(
    r"(?:is|was|are|seems|looks|can|could|does|do|did|has|should|would)(?:n't| not|not)\b"
    r"|(?:is|was|seems|looks|are) (?:\w+ )?(?:wrong|incorrect|false|impossible)\b|not\b"
)
_ARTICLE = re.compile(rf" (?!(?:and|or) [A-Z]{ENDS})[A-Za-z]")  # what follows it
_WORD_LETTER = re.compile(rf"(?<![A-Za-z0-9_'’.-])([A-Z]){ENDS}")


def option_letter(text: str | None, options: Sequence[str] = (), *, mode: Mode = "strict") -> str | None:
    """The one letter that ``text`` (an extracted answer) chooses, or None. Labels are those of ``options``; without any, A to J."""
    letters = option_letters(text, options, mode=mode)
    return next(iter(letters)) if letters is not None and len(letters) == 1 else None


def option_letters(text: str | None, options: Sequence[str] = (), *, mode: Mode = "strict") -> frozenset[str] | None:
    """The letters that ``text`` chooses; several only where it lists them ("A, C", "A and C", "AC"). None: no answer, or ambiguous.

    Strict: "A or B", an article, the pronoun I, a name and two conclusions that differ are no answer. Lenient: the last
    conclusion wins.
    """
    if not text:
        return None
    choices = read_options(tuple(options))
    candidate = plain(text)
    rules = _LENIENT if mode == "lenient" else _STRICT
    for rule in rules:
        found = rule(candidate, choices)
        if found is not None:
            return found or None
    return None


def _concluded(text: str, choices: Options) -> Found:
    found = set(conclusions(text, choices))
    if not found:
        return None
    return found.pop() if len(found) == 1 else NOTHING


def _last_concluded(text: str, choices: Options) -> Found:
    found = conclusions(text, choices)
    return found[-1] if found else None


def _alone(text: str, choices: Options) -> Found:
    match = _ALONE.fullmatch(text.rstrip(END_MARKS))
    return frozenset({match[1].upper()}) if match and match[1].upper() in choices.labels else None


def _several(text: str, choices: Options) -> Found:
    first = re.match(r"(?:options? |choices? )?[(\[]?([A-Z])(?![A-Za-z0-9_])", text)
    if first is None or first[1] not in choices.labels or MORE.match(text, first.end()) is None:
        return None
    return listed(text, first.end(), first[1], choices)


def _run_together(text: str, choices: Options) -> Found:
    letters = text.rstrip(END_MARKS)
    listed = (
        1 < len(letters) <= len(choices.labels) and set(letters) <= set(choices.labels) and list(letters) == sorted(set(letters))
    )
    return frozenset(letters) if listed else None


def _labelled(text: str, choices: Options) -> Found:
    match = _LABELLED.match(text)
    letter = (match[1] or match[2]) if match else ""
    if match is None or letter not in choices.labels:
        return None
    rest = text[match.end() :]
    own = choices.texts[choices.labels.index(letter)] if choices.texts else ""
    whole = choices.by_text(text)
    if whole is not None and fold(rest) != own:
        return frozenset({whole})
    return NOTHING if _lists_options(rest, letter, own, choices) else frozenset({letter})


def _small_labelled(text: str, choices: Options) -> Found:
    """A lower-case label before the very text of its option, as in "b) a dog"."""
    match = _SMALL_LABEL.match(text)
    letter = (match[1] or match[2]).upper() if match else ""
    if match is None or letter not in choices.labels or not choices.texts:
        return None
    return frozenset({letter}) if fold(text[match.end() :]) == choices.texts[choices.labels.index(letter)] else None


def _lists_options(rest: str, letter: str, own: str, choices: Options) -> bool:
    """Whether the text behind a label goes on to other options, as in "A. a cat B. a dog" or "(A) (B) (C)"."""
    if fold(rest) == own:
        return False
    others = set(choices.labels) - {letter}
    more = re.match(rf"(?:(?:or|and|,|/|&) ?)?[(\[]?([A-Z]){ENDS}(?! [a-z])", rest)
    if (more and more[1] in others) or any(m["letter"] in others for m in _EITHER.finditer(rest)):
        return True
    starts = re.finditer(r"(?:^|[ \n])[(\[]?([A-Z])[.):\]] ?([^\n]{0,200})", rest)
    texts = dict(zip(choices.labels, choices.texts, strict=False))
    return any(
        m[1] in others and (rest[m.start()] == "\n" or bool(texts.get(m[1]) and fold(m[2]).startswith(texts[m[1]]))) for m in starts
    )


def _by_text(text: str, choices: Options) -> Found:
    label = choices.by_text(text)
    return None if label is None else frozenset({label})


def _with_prose(text: str, choices: Options) -> Found:
    match = _LEADING.match(text)
    if match is None or match[1] in "AI" or match[1] not in choices.labels:
        return None
    if _DENIED.match(text, match.end()) or any(m["letter"] != match[1] for m in _EITHER.finditer(text, 0, match.end() + 80)):
        return NOTHING
    return frozenset({match[1]})


def _first_line_alone(text: str, choices: Options) -> Found:
    """A first line that is a lone letter, with an explanation below that names no other."""
    line, _, rest = text.partition("\n")
    if not rest:
        return None
    found = _alone(line, choices)
    return found if found and not (_named(rest, choices) - found) else None


def _named(text: str, choices: Options) -> set[str]:
    """Labels standing alone in ``text``; an A before a lower-case word is an article, and I is never counted."""
    return {
        m[1]
        for m in _WORD_LETTER.finditer(text)
        if m[1] in choices.labels and m[1] != "I" and not (m[1] == "A" and _ARTICLE.match(text, m.end()))
    }


def _alone_or_own_text(text: str, choices: Options) -> Found:
    found = _alone(text, choices)
    if found is not None:
        return found
    match = _LABELLED.match(text)
    letter = (match[1] or match[2]) if match else ""
    if match is None or letter not in choices.labels or not choices.texts:
        return None
    own = choices.texts[choices.labels.index(letter)]
    return frozenset({letter}) if fold(text[match.end() :]) == own else None


def _line_start(text: str, choices: Options) -> Found:
    lines = text.split("\n")
    for line in (lines[0], lines[-1]):
        found = _alone(line, choices) or _labelled(line, choices)
        if found:
            return found
    return None


def _holds_one_text(text: str, choices: Options) -> Found:
    """The one option whose text stands in ``text`` as whole words; of nested ones the longest."""
    held = [(label, option) for label, option in zip(choices.labels, choices.texts, strict=False) if option]
    inside = fold(text)
    held = [(label, option) for label, option in held if _holds(inside, option)]
    longest = [(label, option) for label, option in held if not any(option != other and _holds(other, option) for _, other in held)]
    return frozenset({longest[0][0]}) if len(longest) == 1 else None


def _holds(text: str, part: str) -> bool:
    start = text.find(part)
    while start >= 0:
        before, after = text[start - 1 : start], text[start + len(part) : start + len(part) + 1]
        if not (before.isalnum() and part[0].isalnum()) and not (after.isalnum() and part[-1].isalnum()):
            return True
        start = text.find(part, start + 1)
    return False


def _last_line_letter(text: str, choices: Options) -> Found:
    named = _named(text.rpartition("\n")[2], choices)
    return frozenset(named) if len(named) == 1 else None


_Rule = Callable[[str, Options], Found]
_STRICT: tuple[_Rule, ...] = (
    _concluded,
    _alone,
    _several,
    _labelled,
    _by_text,
    _small_labelled,
    _with_prose,
    _first_line_alone,
    _run_together,
)
_LENIENT: tuple[_Rule, ...] = (
    _alone_or_own_text,
    _small_labelled,
    _last_concluded,
    _several,
    _line_start,
    _by_text,
    _holds_one_text,
    _with_prose,
    _last_line_letter,
    _run_together,
)
