"""MMVU: what experts of 27 subjects see in videos."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import ClassVar
from urllib.parse import urlsplit

from attrs import define, evolve

from evr1_core.api import Benchmark, EvalItem, Row
from evr1_core.api.items import Task
from evr1_core.api.releases import choices_of, normalised_item, read_gold

DISCIPLINES: Mapping[str, str] = {
    **dict.fromkeys(("Biology", "Chemistry", "Modern_Physics", "Astronomy", "Geography"), "Science"),
    **dict.fromkeys(("Materials_Science", "Neurobiology", "Electromagnetism", "Thermodynamics", "Mechanics"), "Science"),
    **dict.fromkeys(("Civil_Engineering", "Electrical_Engineering", "Mechanical_Engineering"), "Engineering"),
    **dict.fromkeys(("Biomedical_Engineering", "Electronics_and_Communication", "Computer_Science"), "Engineering"),
    **dict.fromkeys(("Clinical_Medicine", "Basic_Medicine", "Preventive_Medicine", "Pharmacy", "Dentistry"), "Healthcare"),
    **dict.fromkeys(("Art", "Literature", "History", "Law", "Economics", "Management"), "Humanities and social science"),
}


@define(kw_only=True)
class MMVU(Benchmark):
    """MMVU (arXiv:2501.12380), validation: 625 questions with five choices and 375 open ones about 583 videos of 27 subjects.

    Data: yale-nlp/MMVU; `validation.json` and `videos/<Subject>/<n>.mp4`. Normalised: `mmvu-all.json`, or `mmvu.json`, which has
    the 625 with choices alone.
    Metric: accuracy, also by form (`mc`, `open`), discipline and subject. Choices by rule, open answers by a judge who sees the
    question: equivalent or not, nothing in between.
    Protocol: the authors sample at temperature 1, up to 1024 tokens; Qwen3-VL takes up to 768 tokens a frame.
    Pitfalls: accuracy on the choices alone is not comparable with that of the authors. They let a judge grade choices, too.
    """

    api = 1
    id = "mmvu"
    title = "MMVU"
    size = 1000
    official = ("validation.json", "data/validation*.parquet")
    normalised = ("mmvu-all.json", "mmvu.json")
    protocols: ClassVar = {"qwen3_vl": {"frame_tokens": 768}}

    def from_official(self, row: Row) -> Iterable[EvalItem]:
        task: Task = "mc" if row.text("question_type") == "multiple-choice" else "open"
        options = row.texts("choices") if task == "mc" else ()
        path = posixpath.normpath(urlsplit(row.text("video")).path)
        item = EvalItem(
            uid=f"{self.id}/{row.text('id')}",
            bench=self.id,
            source_id=row.text("id"),
            task=task,
            question=row.text("question"),
            **choices_of(options),
            gold=read_gold(task, row.text("answer"), options),
            video="/".join(("videos", *Path(path).parts[-2:])),
            origin=row.origin,
        )
        yield _completed(row, item)

    def from_normalised(self, row: Row) -> Iterable[EvalItem]:
        yield _completed(row, normalised_item(row, self.id))


def _completed(row: Row, item: EvalItem) -> EvalItem:
    """The item in its groups, an open one with a judge. The subject is the folder of the video."""
    subject = Path(item.video).parent.name
    if subject not in DISCIPLINES:
        raise row.problem(f"{subject!r}, the folder of the video, is no known subject; known: {', '.join(DISCIPLINES)}")
    groups = {"form": (item.task,), "discipline": (DISCIPLINES[subject],), "subject": (subject,)}
    return evolve(item, groups=groups, judge="equiv" if item.task == "open" else None)
