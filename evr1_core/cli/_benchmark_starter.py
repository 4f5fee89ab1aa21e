"""What ``evr1 new benchmark`` writes: one class that reads a file of questions, and its test."""

BENCHMARK = '''\
"""The benchmark %name%."""

from __future__ import annotations

from collections.abc import Iterable

from attrs import define

from evr1_core.api import Benchmark, EvalItem, Row
from evr1_core.api.releases import choices_of


@define(kw_only=True)
class %cls%(Benchmark):
    """Multiple-choice questions about videos: accuracy, in all and by topic.

    Data: `%name%.jsonl`, a question a line, and the videos that it names.
    """

    api = 1
    id = "%name%"
    title = "%title%"
    size = 2  # published number of questions
    official = ("%name%.jsonl", "%name%.json")

    def from_official(self, row: Row) -> Iterable[EvalItem]:
        yield EvalItem(
            uid=f"{self.id}/{row.text('id')}",
            bench=self.id,
            source_id=row.text("id"),
            task="mc",  # decides how it is asked, read and scored; the others: numeric, yesno, open, tgrounding, ...
            question=row.text("question"),
            **choices_of(row.texts("options")),
            gold=row.text("answer"),
            video=row.text("video"),
            groups={"topic": (row.text("topic"),)},
            origin=row.origin,
        )
'''

BENCHMARK_TEST = """\
import json
from pathlib import Path

from evr1_core.api import BenchmarkPaths
from evr1_core.testing import check_benchmark

from %module% import %cls%

ROW = {"id": "1", "question": "Who waves?", "options": ["a man", "a dog"], "answer": "A", "video": "1.mp4", "topic": "people"}


def test_contract(tmp_path: Path) -> None:
    (tmp_path / "%name%.jsonl").write_text("\\n".join(json.dumps({**ROW, "id": str(number)}) for number in range(2)))
    items = list(%cls%().load(BenchmarkPaths(folder=tmp_path)))
    assert [item.choices for item in items] == [("a man", "a dog")] * 2
    check_benchmark(%cls%(), items)
"""
