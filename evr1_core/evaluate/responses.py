"""Responses made elsewhere: read, matched with questions, scored without an engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from evr1_core.api import BoxSpace, DataError, EvalItem, Media, MediaError, ModelFamily
from evr1_core.api.files import read_rows
from evr1_core.cache.frames import FrameCache
from evr1_core.evaluate.answers import Response, failed, scored, seen
from evr1_core.evaluate.judging import Judging
from evr1_core.evaluate.progress import Progress
from evr1_core.evaluate.work import Work, placed
from evr1_core.rollout.boxes import prediction_space


def read_responses(path: Path, works: Sequence[Work]) -> dict[str, Mapping[str, Any]]:
    """The rows of a file by uid. A row has ``response`` and ``uid``, or ``benchmark`` and ``source_id`` where that is unique; it
    may have ``truncated``. Rows of an evaluation are such rows too; those of failed questions have an ``error`` instead.

    Raises DataError with every row that has not, or belongs to no question, or to one that has another response.
    """
    rows, problems = read_rows(path)
    known = {item.uid for work in works for item in work.items}
    published = _published(works)
    found: dict[str, Mapping[str, Any]] = {}
    for _, origin, row in rows:
        if not isinstance(row, dict) or not isinstance(row.get("response", row.get("error")), str):
            problems.append(f"{origin}: a row must have `response`, a text")
            continue
        uid = row.get("uid") or published.get((str(row.get("benchmark")), str(row.get("source_id"))))
        if uid not in known:
            problems.append(f"{origin}: belongs to no question of these benchmarks; give `uid`, or `benchmark` and `source_id`")
        elif uid in found and found[uid].get("response") != row.get("response"):
            problems.append(f"{origin}: a second response to {uid!r}")
        else:
            found[uid] = row
    if problems:
        raise DataError(problems)
    return found


def _published(works: Sequence[Work]) -> dict[tuple[str, str], str]:
    """Uids by benchmark and published id, where that is unique."""
    found: dict[tuple[str, str], str] = {}
    twice = set()
    for work in works:
        for item in work.items:
            key = (work.id, str(item.source_id))
            if key in found:
                twice.add(key)
            found[key] = item.uid
    return {key: uid for key, uid in found.items() if key not in twice}


def score_responses(
    works: Sequence[Work],
    responses: Mapping[str, Mapping[str, Any]],
    family: ModelFamily | None,
    caches: Mapping[str, FrameCache],
    judging: Judging,
    progress: Progress,
) -> None:
    """A row for every response without one. With a ``family``, boxes are in its space, and frame sizes come from the videos;
    without, boxes are in pixels of the source."""
    for work in works:
        for item in work.todo():
            if item.uid not in responses:
                continue
            given = responses[item.uid]
            shown, boxes = (item, None) if family is None else _placed(work, item, family, caches[work.id])
            row = _row(work, shown, given, boxes)
            work.record(row)
            progress.said(work, row)
            if row["judge"] == "pending":
                judging.submit(work, shown, row)


def _row(work: Work, item: EvalItem, given: Mapping[str, Any], boxes: BoxSpace | None) -> dict[str, Any]:
    if "response" not in given:
        return failed(work.benchmark, item, work.settings, given.get("status", "engine"), given["error"])
    if given.get("boxes"):
        boxes = BoxSpace(**given["boxes"])
    response = Response(
        text=given["response"],
        truncated=bool(given.get("truncated")),
        num_tokens=given.get("num_tokens"),
        prompt_tokens=given.get("prompt_tokens"),
        opened=bool(given.get("opened")),
        boxes=boxes,
    )
    return scored(work.benchmark, item, response, work.settings)


def _placed(work: Work, item: EvalItem, family: ModelFamily, cache: FrameCache) -> tuple[EvalItem, Any]:
    """The item with what its video says, and the space of the family's boxes; without the video, the item alone."""
    item = placed(work, item)
    try:
        outline = cache.outline(Media(kind="video", path=item.video, span=item.clip))
    except MediaError:
        return item, prediction_space(family.box_kind, ())
    return seen(item, outline), prediction_space(family.box_kind, [outline])
