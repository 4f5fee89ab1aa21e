"""Models in shards compute what a model in one piece does, whatever media each process has."""

from __future__ import annotations

import json

import pytest

from evr1_core.registry.catalog import Catalog
from tests.ranks import run_ranks
from tests.tiny import tiny_folder

FAMILIES = sorted(ref.name for ref in Catalog.scan().group("models"))
LIMITS = {"torch.float32": 1e-5, "torch.float64": 1e-10}


@pytest.mark.slow
@pytest.mark.parametrize("size", [2, 3])
@pytest.mark.parametrize("family", FAMILIES)
def test_any_media_on_any_process(family, size):
    words = ["-m", "tests.core.train.hybrid_worker", family, str(tiny_folder(family))]
    rows = [json.loads(line) for line in run_ranks(size, words, timeout=200)[0].splitlines() if line.startswith("{")]
    pairings = {2: 16 + 16 + 4 + 2, 3: 20 + 10 + 4 + 2}
    assert len(rows) == pairings[size] + 4 * 2
    for row in rows:
        assert row["scale"] > 0.01, row
        assert row["gradient"] <= LIMITS[row["dtype"]], row
        assert row["logprobs"] <= LIMITS[row["dtype"]], row
        assert row["metrics"] <= 1e-5, row
        assert row["keys"], row
        assert row["same_trained"], row
