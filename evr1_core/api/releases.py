"""Reads the annotation files of benchmarks: rows with their places, and the normalised form that several benchmarks share."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypedDict

from attrs import evolve, frozen

from evr1_core.api.answers import count, extract, number, option_letter, read_tube, span, split_options, truth
from evr1_core.api.errors import DataError
from evr1_core.api.files import read_tables
from evr1_core.api.items import EvalItem, Gold, Task

SUFFIXES = (".mp4", ".MP4", ".mkv", ".webm", ".avi", ".mov")
TASKS: Mapping[str, Task] = {  # problem types of the normalised form
    "multiple choice": "mc",
    "numerical": "numeric",
    "regression": "regression",
    "temporal grounding": "tgrounding",
    "spatial-temporal grounding": "stgrounding",
    "open-ended": "open",
    "REC": "count",
    "SSR": "yesno",
    "CRR": "yesno",
}


@frozen(kw_only=True)
class Row:
    """One record of a release: ``index`` counts from 0 over all its files; ``key`` is its key where the file holds one object.

    Reading a key that is missing or of another kind raises DataError with the place. Several keys: the first that is there.
    """

    values: Mapping[str, Any]
    index: int
    origin: str
    file: Path
    key: str = ""

    def get(self, *keys: str) -> Any:
        """The value under the first of ``keys`` that is there; None without one."""
        return next((self.values[key] for key in keys if self.values.get(key) is not None), None)

    def any(self, *keys: str) -> Any:
        """The value under the first of ``keys`` that is there."""
        value = self.get(*keys)
        if value is None:
            raise self.problem(f"there is no {' or '.join(keys)}")
        return value

    def text(self, *keys: str) -> str:
        """A text that is not blank, outer white space trimmed; a number as it is written."""
        value = self.any(*keys)
        if isinstance(value, bool) or not isinstance(value, str | int | float) or not str(value).strip():
            raise self.problem(f"{' or '.join(keys)} must be text that is not blank; is {value!r:.80}")
        return str(value).strip()

    def number(self, *keys: str) -> float:
        """A number, or a text that is one."""
        value = self.any(*keys)
        try:
            return float(value)
        except (TypeError, ValueError):
            raise self.problem(f"{' or '.join(keys)} must be a number; is {value!r:.80}") from None

    def texts(self, *keys: str) -> tuple[str, ...]:
        """A list of texts; those of an object {"A": ...} with their labels, in order."""
        value = self.any(*keys)
        if isinstance(value, Mapping):
            value = [f"{label}. {text}" for label, text in sorted(value.items()) if text is not None]
        if not isinstance(value, Sequence) or isinstance(value, str):
            raise self.problem(f"{' or '.join(keys)} must be a list of texts; is {value!r:.80}")
        return tuple(str(each) for each in value)

    def with_values(self, **values: Any) -> Row:
        """The same row with other values."""
        return evolve(self, values={**self.values, **values})

    def problem(self, reason: str) -> DataError:
        """The error that says what is wrong with this row, to be raised."""
        return DataError([f"{self.origin}: {reason}"])


def read_release(files: Iterable[Path]) -> Iterator[Row]:
    """The rows of annotation files (.json, .jsonl, .parquet, .csv, .tsv), file by file. A row that is a list or a text, as in an
    object of lists, stands under the key ``value``. Raises DataError for what cannot be read: a benchmark is whole or not run.
    """
    index = 0
    for file in files:
        rows, problems = read_tables(file)
        if problems:
            raise DataError(problems)
        for _, origin, content in rows:
            key, values = content if isinstance(content, tuple) else ("", content)
            values = values if isinstance(values, Mapping) else {"value": values}
            yield Row(values=values, index=index, origin=origin, file=file, key=key)
            index += 1


@frozen(kw_only=True)
class BenchmarkPaths:
    """Where the data of one benchmark lie: ``folder`` holds its official release, as published, and all its media.

    Normalised files are looked for there and beside it. ``source`` says which to read; ``auto``: the official one where it is.
    """

    folder: Path
    source: Literal["auto", "official", "normalised"] = "auto"

    def official(self, patterns: Sequence[str]) -> tuple[Path, ...]:
        """The files of the first pattern that matches any, sorted by path."""
        found = (tuple(sorted(self.folder.glob(pattern))) for pattern in patterns if self.source != "normalised")
        return next((files for files in found if files), ())

    def normalised(self, names: Sequence[str]) -> tuple[Path, ...]:
        """The first file of those names, in the folder or beside it; a tuple of one or none."""
        places = [place / name for name in names for place in (self.folder, self.folder.parent) if self.source != "official"]
        return next(((place,) for place in places if place.is_file()), ())

    def medium(self, *paths: str) -> str | None:
        """The first of ``paths`` that lies in the folder, a video also with another of the usual suffixes; None when none does."""
        names = (name for path in paths for name in _suffixed(path))
        return next((name for name in names if (self.folder / name).is_file()), None)


def _suffixed(path: str) -> tuple[str, ...]:
    return (path, *(str(Path(path).with_suffix(suffix)) for suffix in SUFFIXES if Path(path).suffix in SUFFIXES))


class Choices(TypedDict):
    """Two fields of an item, to be passed on by ``**``."""

    labels: tuple[str, ...]
    choices: tuple[str, ...]


def choices_of(options: Sequence[str]) -> Choices:
    """``labels`` and ``choices`` of an item, out of options as they stand in data: one label is stripped where it fits."""
    labels, texts = split_options(options)
    return Choices(labels=labels, choices=texts)


def label_of(row: Row, options: Choices, answer: str) -> str:
    """The label of the choice whose text is ``answer``, the first of two alike. Raises DataError when there is none."""
    for label, choice in zip(options["labels"], options["choices"], strict=True):
        if choice == answer.strip():
            return label
    raise row.problem(f"the answer {answer!r:.80} is none of the choices {options['choices']}")


def split_question(row: Row, text: str) -> tuple[str, tuple[str, ...]]:
    """Question and options of a text that holds both, one option a line from ``A`` on ("A. x", "(A) x", "A) x", "A: x").

    A line without the next label goes on with the option above it. Raises DataError when there are no options.
    """
    lines = [line.strip() for line in text.strip().splitlines() if line.strip()]
    starts = [number for number, line in enumerate(lines) if _OPTION.match(line) and _letter(line) == "A"]
    if not starts:
        raise row.problem(f"the question holds no options: {text!r:.80}")
    options: list[str] = []
    for line in lines[starts[-1] :]:
        if _OPTION.match(line) and _letter(line) == chr(ord("A") + len(options)):
            options.append(line)
        else:
            options[-1] += f" {line}"
    return "\n".join(lines[: starts[-1]]), tuple(options)


_OPTION = re.compile(r"\(?[A-Z][.):]")


def _letter(line: str) -> str:
    return line.removeprefix("(")[0]


def normalised_item(row: Row, bench: str) -> EvalItem:
    """The item of a record in the normalised form: ``problem``, ``problem_type``, ``options``, ``solution``, ``path``.

    Raises DataError, with the place, for an unknown problem type or a solution of another kind.
    """
    kind = row.text("problem_type")
    if kind not in TASKS:
        raise row.problem(f"unknown problem_type {kind!r}; known: {', '.join(TASKS)}")
    task, options = TASKS[kind], row.get("options") or ()
    image = row.get("image_path")
    return EvalItem(
        uid=f"{bench}/{row.index}",
        bench=bench,
        source_id=str(row.any("problem_id")),
        task=task,
        question=row.text("problem"),
        **choices_of(options),
        gold=read_gold(task, row.text("solution"), options),
        video=posixpath.normpath(row.text("path")),
        images=(posixpath.normpath(image),) if image else (),
        origin=row.origin,
    )


def read_gold(task: Task, solution: str, options: Sequence[str] = ()) -> Gold:
    """The gold in a solution, bare or between answer tags; None when it cannot be read (the item then says so)."""
    text = extract(solution)
    if task in ("mc", "caption_mc"):
        return option_letter(text, options)
    if task == "count":
        return count(text)
    if task == "yesno":
        return truth(text)
    if task in ("numeric", "regression"):
        found = number(text)
        return None if found is None else found.value
    if task == "tgrounding":
        return span(text)
    return read_tube(text) if task == "stgrounding" else text
