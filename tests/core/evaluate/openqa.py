"""A benchmark in one file, of open questions: what a third party would write."""

from __future__ import annotations

from collections.abc import Iterable

from attrs import define

from evr1_core.api import Benchmark, EvalItem, Row


@define(kw_only=True)
class OpenQA(Benchmark):
    """Open questions about films, decided by a judge where the text is not the same."""

    api = 1
    id = "openqa"
    title = "Open questions"
    size = 4
    official = ("openqa.jsonl",)

    def from_official(self, row: Row) -> Iterable[EvalItem]:
        yield EvalItem(
            uid=f"openqa/{row.text('id')}",
            bench=self.id,
            source_id=row.text("id"),
            task="open",
            question=row.text("question"),
            gold=row.text("answer"),
            video=row.text("video"),
            judge="equiv",
            groups={"kind": (row.text("kind"),)},
            origin=row.origin,
        )
