"""The wording of questions, by task and style, and the form of the answers that it asks for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from evr1_core.api.items import EvalItem, PromptStyle, Task
from evr1_core.api.samples import Media, Prompt
from evr1_core.api.subtitles import Line, transcript_text

CHOICES = "Possible answer choices:"
ANSWERS: Mapping[Task, str] = {  # what X is, in "answer with X"
    "mc": "the letter of the best choice",
    "caption_mc": "a description",
    "numeric": "one number",
    "regression": "one number",
    "count": "one whole number",
    "yesno": "Yes or No",
    "open": "the answer in a few words",
    "tgrounding": '{"time": [start, end]} in seconds',
    "stgrounding": '{"time": [start, end], "boxes": {"second": [x1, y1, x2, y2]}} with one box for each whole second',
}
LETTER_END = "The best answer is:"
FINAL = "Therefore, the final answer is:"
IN_TAGS = frozenset({"tgrounding", "stgrounding"})  # tasks whose answer is JSON between tags in every style


def media_of(item: EvalItem) -> tuple[Media, ...]:
    """The video of an item, cut to its clip, and the images behind it."""
    video = Media(kind="video", path=item.video, span=item.clip)
    return (video, *(Media(kind="image", path=path) for path in item.images))


def ask(item: EvalItem, style: PromptStyle, question: str = "", transcript: Sequence[Line] = (), what: str = "") -> Prompt:
    """The prompt of an item: media, transcript, question (``question``, else the item's), choices, and what to answer (``what``,
    else what its task wants).
    """
    blocks = [question or item.question]
    if style.subtitles != "none":
        blocks.insert(0, transcript_text(transcript))
    if item.task == "mc":
        blocks.append("\n".join([CHOICES, *item.options]))
    blocks.append(instruction(item.task, style, what))
    return Prompt(parts=(*media_of(item), "\n".join(block for block in blocks if block)))


def instruction(task: Task, style: PromptStyle, what: str = "") -> str:
    """What closes a question: how to answer, with what (``what``, else what the task wants)."""
    wanted = what or ANSWERS[task]
    if task == "caption_mc":
        return ""
    if style.form == "tags":
        return f"Reason between <think> and </think>, then give {wanted} between <answer> and </answer>."
    if task in IN_TAGS:
        reason = "Reason briefly, then give" if style.form == "reason" else "Give"
        return f"{reason} {wanted} between <answer> and </answer>."
    if style.form == "reason":
        return f'Reason briefly step by step, then close with one line "{FINAL} X", where X is {wanted}.'
    if task == "mc":
        return f"Answer with {wanted} and nothing else.\n{LETTER_END}"
    return f"Answer with {wanted} and nothing else."


def response(task: Task, style: PromptStyle, answer: str) -> str:
    """A response of the form that :func:`instruction` asks for, which gives ``answer``."""
    if style.form == "tags":
        return f"<think>I look at the frames.</think><answer>{answer}</answer>"
    if task == "caption_mc":
        return answer
    if task in IN_TAGS:
        return f"<answer>{answer}</answer>"
    return f"I look at the frames.\n{FINAL} {answer}" if style.form == "reason" else answer
