"""Transcripts: lines with their times, out of the files that benchmarks publish."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from attrs import frozen

from evr1_core.api.answers import time_of
from evr1_core.api.errors import DataError
from evr1_core.api.files import read_rows

SHORTEST = 1.0  # seconds; a shorter line could lie between two frames
PAUSE, SENTENCE_PAUSE = 0.5, 0.1  # seconds between words of two lines
SENTENCE_ENDS = (".", "?", "!", "…", "。", "？", "！")
NONE = "No subtitles available."
HEAD = "This video's subtitles are listed below:"
_CUE = re.compile(
    r"(\d+):(\d\d):(\d\d)[,.](\d{1,3})\s*-->\s*(\d+):(\d\d):(\d\d)[,.](\d{1,3})[^\n]*\n(.*?)(?=\n\s*\n|\Z)", re.DOTALL
)
_MARKUP = re.compile(r"<[^<>\n]{0,200}>|\{\\[^{}\n]{0,200}\}")


@frozen
class Line:
    """One line of a transcript; ``start`` and ``end`` in seconds of the video file."""

    start: float
    end: float
    text: str


def read_lines(path: Path, offset: float = 0.0) -> list[Line]:
    """The lines of an .srt file, or of JSON, by start; ``offset`` seconds are subtracted. Raises DataError.

    JSON: ``text`` (or ``line``) and ``timestamp`` [s, e] or ``start`` and ``end``: lines, each at least a second long about its
    middle, without an end to that of the video; or ``text``, ``start_time`` and ``end_time``: words, which are joined to lines.
    """
    lines = _srt(path) if path.suffix.lower() == ".srt" else _json(path)
    moved = (Line(line.start - offset, line.end - offset, line.text) for line in lines if line.text)
    return sorted(moved, key=lambda line: (line.start, line.end))


def shown_with(lines: Iterable[Line], times: Sequence[float], span: tuple[float, float] | None = None) -> list[Line]:
    """The lines that overlap one of the frames at ``times`` (seconds from the start of ``span``), each once, in order."""
    start = span[0] if span else 0.0
    return [line for line in lines if any(line.start <= start + time <= line.end for time in times)]


def transcript_text(lines: Sequence[Line]) -> str:
    """The block of a prompt that gives a transcript; a sentence that there is none."""
    return "\n".join([HEAD, *(line.text for line in lines)]) if lines else NONE


def _srt(path: Path) -> list[Line]:
    try:
        text = path.read_text(encoding="utf-8-sig", errors="strict").replace("\r\n", "\n")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError([f"{path}: cannot be read: {error}"]) from error
    return [Line(_clock(m, 1), _clock(m, 5), _clean(m[9])) for m in _CUE.finditer(text)]


def _clock(match: re.Match[str], first: int) -> float:
    hours, minutes, seconds, part = match.group(first, first + 1, first + 2, first + 3)
    return int(hours) * 3600 + int(minutes) * 60 + int(seconds) + float(f"0.{part}")


def _clean(text: str) -> str:
    return " ".join(_MARKUP.sub("", text).split())


def _json(path: Path) -> list[Line]:
    rows, problems = read_rows(path)
    if problems:
        raise DataError(problems)
    lines = [_line(origin, row) for _, origin, row in rows]
    if all("start_time" in row for _, _, row in rows):
        return _joined(sorted(lines, key=lambda word: word.start))
    return [_widened(line) for line in lines]


def _line(origin: str, row: Any) -> Line:
    text = row.get("text", row.get("line")) if isinstance(row, Mapping) else None
    match row:
        case {"timestamp": [int() | float() as start, None]}:
            times = [(float(start), math.inf)]
        case Mapping():
            times = time_of(row)
        case _:
            times = []
    if not isinstance(text, str) or len(times) != 1:
        raise DataError([f"{origin}: a line of a transcript must have a text and its times; is {row!r:.80}"])
    return Line(*times[0], _clean(text))


def _joined(words: Iterable[Line]) -> list[Line]:
    """Words as lines, which end at a pause, a shorter one behind a sentence."""
    lines: list[Line] = []
    for word in words:
        pause = word.start - lines[-1].end if lines else math.inf
        if pause > PAUSE or (pause > SENTENCE_PAUSE and lines[-1].text.endswith(SENTENCE_ENDS)):
            lines.append(word)
        else:
            lines[-1] = Line(lines[-1].start, max(lines[-1].end, word.end), f"{lines[-1].text} {word.text}".strip())
    return lines


def _widened(line: Line) -> Line:
    missing = (SHORTEST - (line.end - line.start)) / 2
    return Line(line.start - missing, line.end + missing, line.text) if missing > 0 else line
