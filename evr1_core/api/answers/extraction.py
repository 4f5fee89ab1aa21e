"""Takes the answer out of a response; used by rewards, in strict mode, and by evaluation, in both."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Literal

from attrs import frozen

from evr1_core.api.errors import BadGoldError

if TYPE_CHECKING:
    from evr1_core.api.samples import Sample

Mode = Literal["strict", "lenient"]
REASONING_TAGS = ("think", "thought", "thinking")
_ANCHOR = re.compile(r"\bfinal answer[*_]{0,3}(?: is\b(?: ?:)?| ?:)[*_]{0,3}", re.IGNORECASE)
_ANSWER_TAG = re.compile(r"</?answer\s*>", re.IGNORECASE)
_BRACE = re.compile(r"\\boxed\s*\{|\\.|[{}]", re.DOTALL)


@frozen
class Tag:
    """An answer or reasoning tag: ``name`` in lower case, ``closing``, and where it stands in the text."""

    name: str
    closing: bool
    start: int
    end: int


@frozen
class Layout:
    """Where answers and reasoning stand in a response. Spans are offsets of the content, tags left out.

    ``answers``: complete pairs outside the reasoning. ``outside``: stretches outside the reasoning. ``after``: offset behind the
    last close tag of the reasoning, None without one. ``open_reasoning``: it was opened and never closed. ``open_answer``: offset
    behind a last answer tag that was never closed.
    """

    answers: tuple[tuple[int, int], ...]
    outside: tuple[tuple[int, int], ...]
    after: int | None
    open_reasoning: bool
    open_answer: int | None


def tags(text: str, reasoning_tag: str = "think") -> list[Tag]:
    """All answer and reasoning tags of ``text``, in order; their case does not matter."""
    return [Tag(m[2].lower(), bool(m[1]), m.start(), m.end()) for m in _tag_pattern(reasoning_tag.lower()).finditer(text)]


@lru_cache(maxsize=16)
def _tag_pattern(reasoning_tag: str) -> re.Pattern[str]:
    names = "|".join(re.escape(name) for name in dict.fromkeys(("answer", *REASONING_TAGS, reasoning_tag)))
    return re.compile(rf"<(/?)({names})\s*>", re.IGNORECASE)


def layout(text: str, *, opens_thinking: bool = False, reasoning_tag: str = "think") -> Layout:
    """The layout of a response, in one pass.

    A close tag without an open one means that everything before it was reasoning: the chat template opened it, or the reasoning
    spoke of its own tags. An answer never spans reasoning.
    """
    answers: list[tuple[int, int]] = []
    outside: list[tuple[int, int]] = []
    thinking, start = opens_thinking, 0
    opened: int | None = None
    after: int | None = None
    for tag in tags(text, reasoning_tag):
        if tag.name != "answer" and not tag.closing:
            if not thinking:
                outside.append((start, tag.start))
            thinking, opened = True, None
        elif tag.name != "answer":
            if not thinking:
                answers, outside, opened = [], [], None
            thinking, start, after = False, tag.end, tag.end
        elif not thinking and not tag.closing:
            opened = tag.end
        elif not thinking and opened is not None:
            answers.append((opened, tag.start))
            opened = None
    if not thinking:
        outside.append((start, len(text)))
    return Layout(tuple(answers), tuple(outside), after, thinking, opened)


def extract(text: str, *, mode: Mode = "strict", opens_thinking: bool = False, reasoning_tag: str = "think") -> str | None:
    r"""The answer that a response gives, outer white space trimmed, or None.

    The last complete ``<answer>`` pair outside the reasoning; else the last ``\boxed{}`` with balanced braces outside it; else
    the text after the reasoning; else, without reasoning tags, all of it. Reasoning that was never closed leaves no answer.
    Lenient mode takes a last ``<answer>`` that was cut off to the end, and nothing from a reply whose last reasoning was; in
    strict mode a cut answer is none. ``opens_thinking``: the chat template ends with the open tag. Takes linear time.
    """
    found = layout(text, opens_thinking=opens_thinking, reasoning_tag=reasoning_tag)
    if mode == "lenient" and found.open_reasoning:
        return None
    if mode == "lenient" and found.open_answer is not None:
        return text[found.open_answer :].strip()
    if found.answers:
        start, end = found.answers[-1]
        return text[start:end].strip()
    for start, end in reversed(found.outside):
        if (boxed := last_boxed(text[start:end])) is not None:
            return boxed.strip()
    if found.open_reasoning or found.open_answer is not None:
        return None
    return text[found.after or 0 :].strip() or None


def concluded(text: str, *, opens_thinking: bool = False, anchored: bool = False) -> str | None:
    """The answer to an open question, for evaluation: what follows the last "Final answer:" outside the reasoning, else what
    :func:`extract` gives in lenient mode. ``anchored``: without that phrase there is no answer.
    """
    found = layout(text, opens_thinking=opens_thinking)
    if found.open_reasoning:
        return None
    anchors = list(_ANCHOR.finditer(text, found.after or 0))
    if anchors:
        return _ANSWER_TAG.sub("", text[anchors[-1].end() :]).strip() or None
    return None if anchored else extract(text, mode="lenient", opens_thinking=opens_thinking)


def last_boxed(text: str) -> str | None:
    r"""Content of the last ``\boxed{}`` with balanced braces; of nested ones the outer."""
    stack: list[int] = []  # start of the content of a box, -1 for another brace
    found: str | None = None
    content = (0, 0)
    for match in _BRACE.finditer(text):
        token = match.group()
        if token == "}":
            if stack and (start := stack.pop()) >= 0:
                content, found = (start, match.start()), ""
        elif token == "{":
            stack.append(-1)
        elif token.endswith("{") and len(token) > 2:  # a box, not an escaped brace
            stack.append(match.end())
    return None if found is None else text[slice(*content)]


def gold_text(sample: Sample) -> str:
    """The gold answer of a record, through the same extraction. Raises BadGoldError when there is none."""
    found = extract(sample.answer)
    if not found:
        raise BadGoldError(sample, "an answer")
    return found
