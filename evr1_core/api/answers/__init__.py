"""Reads answers: takes them out of responses, and letters, numbers, JSON, spans, boxes and truth values out of them.

``strict`` (rewards): ambiguity is no answer. ``lenient`` (evaluation): the last conclusion wins. Every reader gives None, or an
empty list, for an answer that it cannot read, raises nothing, and takes time linear in the length of the text.
"""

from evr1_core.api.answers.extraction import Layout, Mode, Tag, concluded, extract, gold_text, last_boxed, layout, tags
from evr1_core.api.answers.jsons import json_values, parse_json
from evr1_core.api.answers.letters import option_letter, option_letters
from evr1_core.api.answers.numerals import Number, aligned, count, number, numbers, same_number
from evr1_core.api.answers.options import Options, read_options, split_options
from evr1_core.api.answers.text import fold, folded, plain, unfenced
from evr1_core.api.answers.times import Span, span, spans, time_of
from evr1_core.api.answers.truths import truth
from evr1_core.api.answers.tubes import Box, Tube, box, boxes, one_box, read_tube, tube

__all__ = [
    "Box",
    "Layout",
    "Mode",
    "Number",
    "Options",
    "Span",
    "Tag",
    "Tube",
    "aligned",
    "box",
    "boxes",
    "concluded",
    "count",
    "extract",
    "fold",
    "folded",
    "gold_text",
    "json_values",
    "last_boxed",
    "layout",
    "number",
    "numbers",
    "one_box",
    "option_letter",
    "option_letters",
    "parse_json",
    "plain",
    "read_options",
    "read_tube",
    "same_number",
    "span",
    "spans",
    "split_options",
    "tags",
    "time_of",
    "truth",
    "tube",
    "unfenced",
]
