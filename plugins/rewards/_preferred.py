"""The preference that an answer states: response 1, response 2, or a tie."""

from __future__ import annotations

import re
from collections.abc import Iterator

from evr1_core.api.answers import fold, plain

TIE = 0
NAMES = {TIE: "a tie", 1: "response 1", 2: "response 2"}
LONGEST = 20_000  # characters; what states a preference is short
_LABELS = {"1": 1, "a": 1, "one": 1, "first": 1, "2": 2, "b": 2, "two": 2, "second": 2, "c": TIE}
_NOUN = r"(?:response|answer|assistant|option|candidate|output|model|caption|description|reply|solution)"
_NAMED = rf"{_NOUN} ?#?(?:[12ab]|one|two)\b|(?:first|second) (?:one|{_NOUN})\b|the (?:first|second)(?= is\b| was\b| wins\b|[,;]|$)"
_SIDE = re.compile(rf"\b(?:{_NAMED})")
_LONE = re.compile(rf"(?:the )?(?:{_NOUN} )?[\[(]*([12abc]|one|two|first|second)[\])]*")
_CHAIN = re.compile(rf"[\[(]*(?:{_NOUN} )?([12ab]) ?([<>=])\2* ?(?:{_NOUN} )?([12ab])[\])]*")
_VERB = r"(?:is|was|are|seems|looks|appears to be|would be|performs|does|did|works)"
_BETTER = r"(?:better|superior|preferred|preferable|best|stronger|winner|more \w+)"
_WORSE = r"(?:worse|inferior|weaker|worst|less \w+)"
_STATED = re.compile(
    rf"\b({_NAMED}|[12ab](?= ))(?: (wins|loses)\b| {_VERB}(?: the| a bit| a lot| much| far| \w+ly){{0,2}} ({_BETTER}|{_WORSE})\b)"
)
_CLAIM = re.compile(
    rf"\b(?:prefer|choose|pick|favou?r|winner is|winner|preference(?: is)?|preferred|better(?: one)? is|answer(?: is)?)"
    rf":? (?:the )?({_NAMED}|[12ab](?=$|[.,;)]| over\b| to\b))"
)
_EITHER = re.compile(rf"\b[12ab] ?(?:or|and|/|\||,|&) ?(?:{_NOUN} )?#?[12ab]\b")
_OVER = re.compile(rf"\b({_NAMED}) (?:over|beats|outperforms|surpasses)\b")
_TIE = re.compile(r"\b(?:ties?|tied|equal|equally|equivalent|draw|identical|(?:is|are) the same|same quality|neither)\b")
_NO = re.compile(r"\b(?:not|no|never|cannot|isn't|aren't|doesn't)\b")
_REASON = re.compile(r"\b(?:because|since|as it|as they|due to|given that)\b")
_CLAUSE = re.compile(r"[.;!?\n。；！？]+|\bbut\b|\balthough\b|\bwhile\b|\bwhereas\b")
_MARKS = re.compile(r"[\"“”]|'(?!t\b)")


def preferred(text: str) -> int | None:
    """1, 2, or 0 for a tie; None when ``text`` (an extracted answer or gold) states none of them, or several that differ."""
    if len(text) > LONGEST:
        return None
    lines = (fold(line) for line in plain(text).split("\n"))
    answer = _MARKS.sub("", "\n".join(lines).replace("’", "'")).strip()
    if lone := _LONE.fullmatch(answer):
        return _LABELS[lone[1]]
    if chain := _CHAIN.fullmatch(answer):
        return _chained(chain[1], chain[2], chain[3])
    clauses = [_REASON.split(clause, maxsplit=1)[0] for clause in _CLAUSE.split(answer)]
    claims = {claim for clause in clauses for claim in _claims(clause)}
    if claims:
        return claims.pop() if len(claims) == 1 else None
    return _only_named(answer)


def _chained(left: str, sign: str, right: str) -> int | None:
    first, second = _LABELS[left], _LABELS[right]
    if first == second:
        return None
    return TIE if sign == "=" else first if sign == ">" else second


def _claims(clause: str) -> Iterator[int]:
    """The preferences that a clause states outright, both where it offers a choice. A negated one states none: not better may be
    worse or equal.
    """
    if _NO.search(clause):
        return
    if _TIE.search(clause):
        yield TIE
    stated = [] if re.search(r"\bneither\b", clause) else list(_stated(clause))
    yield from (1, 2) if stated and _EITHER.search(clause) else stated


def _stated(clause: str) -> Iterator[int]:
    for side, outcome, degree in _STATED.findall(clause):
        worse = outcome == "loses" or re.fullmatch(_WORSE, degree)
        yield 3 - _side(side) if worse else _side(side)
    for match in (*_CLAIM.finditer(clause), *_OVER.finditer(clause)):
        yield _side(match[1])


def _only_named(answer: str) -> int | None:
    """The one response that an answer without a comparison is about; both, when it says so and names none alone."""
    sides = {_side(name) for name in _SIDE.findall(answer)}
    if _NO.search(answer) or re.search(rf"\b{_WORSE}\b", answer):
        return None
    if len(sides) == 1 and not _EITHER.search(answer):
        return sides.pop()
    return TIE if re.search(r"\bboth\b", answer) else None


def _side(name: str) -> int:
    found = re.findall(r"\b(?:first|second|one|two|[12ab])\b|(?<=#)[12]|(?<=[a-z])[12]\b", name)
    return _LABELS[next((word for word in found if word != "one"), "one")]
