"""The format reward: whether a response consists of the blocks that were asked for."""

from __future__ import annotations

from evr1_core.api.answers import tags
from evr1_core.config.schema import FormatConfig


def in_form(text: str, config: FormatConfig, *, opens_thinking: bool = False) -> bool:
    """Whether ``text`` is exactly one closed reasoning block followed by exactly one answer block, with nothing but white space
    around.

    ``opens_thinking``: the chat template ends with the open tag, and the response begins inside the block. Without
    ``require_reasoning`` the block may be missing. A second block of either kind counts against it wherever it stands.
    """
    reasoning = config.reasoning_tag.lower()
    found = tags(text, reasoning)
    blocks = [(tag.name, tag.closing) for tag in found]
    answer = [("answer", False), ("answer", True)]
    closed = [(reasoning, True)] if opens_thinking else [(reasoning, False), (reasoning, True)]
    bare = answer if not config.require_reasoning and not opens_thinking else None
    if blocks not in (closed + answer, bare):
        return False
    gaps = [text[: found[0].start], text[found[-1].end :]]
    if opens_thinking:
        gaps[0] = ""  # the reasoning itself
    if len(blocks) > 2:
        gaps.append(text[found[-3].end : found[-2].start])
    return not any(gap.strip() for gap in gaps)
