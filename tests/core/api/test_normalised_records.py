"""The real records in the normalised form, as far as they are at hand: each loads, and its gold answer scores full marks."""

from __future__ import annotations

from pathlib import Path

import pytest
from attrs import define, evolve

from evr1_core.api import Benchmark, EvalItem
from evr1_core.api.releases import normalised_item, read_release
from evr1_core.testing import check_benchmark

RECORDS = Path(__file__).parents[4] / "shared" / "data" / "benchmarks"


@define(kw_only=True)
class Normalised(Benchmark):
    """Records in the normalised form, as they are."""

    api = 1
    id = "normalised"
    title = "Normalised"
    size = 16


@pytest.fixture(scope="module")
def items():
    """All records by task."""
    if not RECORDS.is_dir():
        pytest.skip("the records are not at hand")
    found: dict[str, list[EvalItem]] = {}
    for file in sorted(RECORDS.glob("*.json*")):
        rows = list(read_release([file]))
        assert len(rows) == 16, file
        for row in rows:
            if file.stem == "charades_sta":  # the gold stands in a reasoning tag: its adapter takes it from there
                row = row.with_values(solution=row.text("solution").partition("</think>")[0].removeprefix("<think>"))
            item = normalised_item(row, "normalised")
            item = evolve(item, uid=f"normalised/{file.stem}/{row.index}", judge="equiv" if item.task == "open" else None)
            found.setdefault(item.task, []).append(item)
    return found


def test_all_files_load(items):
    assert sum(map(len, items.values())) == 20 * 16


@pytest.mark.parametrize("task", ["mc", "numeric", "regression", "tgrounding", "stgrounding", "open", "count"])
def test_golds_score_full_marks(items, task):
    own = items[task]
    check_benchmark(with_headline(next(iter(Normalised().score(own[0], None, None)))), own)


def with_headline(metric):
    @define(kw_only=True)
    class Own(Normalised):
        """The same with another headline."""

        api = 1
        metrics = (metric,)

    return Own()
