"""ODV-Bench: driving videos, asked about while they go on."""

from __future__ import annotations

import re
from collections.abc import Iterable

from attrs import define, evolve

from evr1_core.api import Benchmark, EvalItem, Row
from evr1_core.api.releases import choices_of, label_of, normalised_item

_CUT = re.compile(r"_s(\d+(?:\.\d+)?)_e(\d+(?:\.\d+)?)\.\w+$")


@define(kw_only=True)
class OdvBench(Benchmark):
    """ODV-Bench: 6348 questions with two or four choices about 1190 driving videos, as far as these have gone.

    Data: MCG-NJU/ODV-Bench; `ODVbench.json` and the unpacked TS_Retrieval.zip, TOI_Recognition.zip and TR_Analysis.zip. Normalised:
    `odvbench.json`, clips cut beforehand, `<index>_<stem>_s<start>_e<end>.mp4`.
    Metric: accuracy, also by task and subtask.
    Protocol: the authors show up to 2048 frames and take at most 16 tokens, greedy.
    Pitfalls: nothing behind `end` may be seen, in clips either: cut without encoding, they end at a later frame. TR_Analysis
    repeats file names in several folders, so that the whole path counts. The authors' script leaves empty replies out; here they
    are wrong. The paper counts 7896 questions; the release has fewer.
    """

    api = 1
    id = "odvbench"
    title = "ODV-Bench"
    size = 6348
    official = ("ODVbench.json",)
    normalised = ("odvbench.json",)

    def from_official(self, row: Row) -> Iterable[EvalItem]:
        options = choices_of(row.texts("candidates"))
        groups = {axis: (row.text(axis),) for axis in ("task", "subtask", "subsubtask") if row.get(axis)}
        yield EvalItem(
            uid=f"{self.id}/{row.index}",
            bench=self.id,
            task="mc",
            question=row.text("question"),
            **options,
            gold=label_of(row, options, row.text("answer")),
            video=row.text("video"),
            clip=(row.number("start"), row.number("end")),
            fps=row.number("fps"),
            groups=groups,
            origin=row.origin,
        )

    def from_normalised(self, row: Row) -> Iterable[EvalItem]:
        item = normalised_item(row, self.id)
        groups = {"task": (row.text("odv_task"),), "subtask": (row.text("odv_subtask"),)}
        cut = _CUT.search(item.video)
        yield evolve(item, groups=groups, clip=(0.0, float(cut[2]) - float(cut[1])) if cut else None)
