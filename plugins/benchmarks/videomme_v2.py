"""Video-MME-v2: four questions about each video, scored together."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from attrs import define

from evr1_core.api import Benchmark, BenchmarkPaths, EvalItem, Row, ScoredRow
from evr1_core.api.aggregates import clusters, grouped, means, percent
from evr1_core.api.releases import choices_of, split_question

SQUARES = (0.0, 1 / 16, 4 / 16, 9 / 16, 1.0)
CHAINS = {  # what the first 0 to 4 questions of a chain are worth, by its structure
    "[1,2,3,4]": SQUARES,
    "[1,[2,3],4]": (0.0, 1 / 12, 4 / 12, 7 / 12, 1.0),
    "[[1,2],3,4]": (0.0, 0.1, 0.2, 0.5, 1.0),
}
ALTERNATIVES = {"[1,[2,3],4]": (1, 2), "[[1,2],3,4]": (0, 1)}  # a chain broken at .. goes one on where question .. is right
AXES = ("level", "second_head", "third_head")


@define(kw_only=True)
class VideoMMEv2(Benchmark):
    """Video-MME-v2: 3200 questions with eight choices in groups of four about 800 videos.

    Data: MME-Benchmarks/Video-MME-v2; `test.parquet`, the unpacked videos `videos/<video_id>.mp4` (or in folders by archive,
    `videos/001/001.mp4`), and transcripts word by word, `subtitle/<video_id>.jsonl`.
    Metric: accuracy; `non_linear`, the mean over groups. A group of related questions is worth the square of its share of right
    ones; a logic chain what its first questions are worth, up to the first wrong one. Also by type, level and heads.
    Protocol: the authors show 64 frames or 1 a second, greedy, up to 4096 tokens, with or without subtitles; here the lines at
    the sampled frames, words being joined to lines.
    Pitfalls: the level and the heads of a group stand at its last question; the published script counts a reply that it cannot
    read as true in a chain and subtracts it in the sum of related questions; here it is wrong.
    """

    api = 1
    id = "videomme_v2"
    title = "Video-MME-v2"
    size = 3200
    official = ("test.parquet", "test-*.parquet", "data/test-*.parquet")
    metrics = ("accuracy", "non_linear")

    def from_official(self, row: Row) -> Iterable[EvalItem]:
        video, question = row.text("video_id"), row.text("question_id")
        kind, structure = row.text("group_type"), str(row.get("group_structure") or "").replace(" ", "")
        if kind not in ("relevance", "logic") or (kind == "logic" and structure not in CHAINS):
            raise row.problem(
                f"unknown group_type {kind!r} or group_structure {structure!r}; known: relevance, logic {list(CHAINS)}"
            )
        yield EvalItem(
            uid=f"{self.id}/{question}",
            bench=self.id,
            source_id=question,
            task="mc",
            question=row.text("question"),
            **choices_of(split_question(row, row.text("options"))[1]),
            gold=row.text("answer"),
            video=f"videos/{video}.mp4",
            subtitle=f"subtitle/{video}.jsonl",
            groups={"type": (kind,)},
            cluster=(video, int(row.with_values(part=question.rpartition("-")[2]).number("part"))),
            meta={"structure": structure, **{axis: str(row.get(axis) or "").removesuffix(".0") for axis in AXES}},
            origin=row.origin,
        )

    def locate(self, path: str, paths: BenchmarkPaths) -> str | None:
        name = path.removeprefix("videos/")
        number = name.partition(".")[0]
        archive = f"{(int(number) - 1) // 20 + 1:03d}" if number.isdecimal() else number  # of twenty videos
        return paths.medium(path, f"videos/{archive}/{name}")

    def aggregate(self, rows: Sequence[ScoredRow]) -> Mapping[str, float]:
        worth: dict[str, list[float]] = defaultdict(list)
        for group in clusters(rows).values():
            value, last = group_score(group), group[-1].item
            axes = {"type": last.groups["type"][0], **{axis: last.meta[axis] for axis in AXES}}
            for name in ("", *(f"{axis}={label}/" for axis, label in axes.items() if label)):
                worth[f"{name}non_linear"].append(value)
        return {**means(rows), **{name: percent(values) for name, values in worth.items()}, **grouped(rows)}


def group_score(group: Sequence[ScoredRow]) -> float:
    """What the questions of one video, in their order, are worth together, in [0, 1]."""
    right = [row.scores["accuracy"] > 0 for row in group]
    item = group[0].item
    if item.groups["type"] == ("relevance",):
        return SQUARES[sum(right)]
    structure = item.meta["structure"]
    length = next((number for number, each in enumerate(right) if not each), len(right))
    broken, other = ALTERNATIVES.get(structure, (-1, -1))
    if length == broken and right[other : other + 1] == [True]:
        length += 1
    return CHAINS[structure][length]
