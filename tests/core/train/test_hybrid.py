"""Models in shards compute what a model in one piece does, whatever media each process has."""

from __future__ import annotations

import json

import pytest

from evr1_core.registry.catalog import Catalog
from tests.ranks import run_ranks
from tests.tiny import tiny_folder

FAMILIES = sorted(ref.name for ref in Catalog.scan().group("models"))
LIMITS = {"torch.float32": 1e-5, "torch.float64": 1e-10}


@pytest.fixture(scope="module")
def rows(request):
    """What all families' cases gave on ``size`` processes, started once: that takes longer than a family's cases."""
    words = [word for family in FAMILIES for word in (family, str(tiny_folder(family)))]
    texts = run_ranks(request.param, ["-m", "tests.core.train.hybrid_worker", *words], timeout=800)
    return request.param, [json.loads(line) for text in texts for line in text.splitlines() if line.startswith("{")]


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("rows", [2, 3], indirect=True)
@pytest.mark.parametrize("family", FAMILIES)
def test_any_media_on_any_process(family, rows):
    size, found = rows
    pairings = {2: 16 + 16 + 4 + 2, 3: 20 + 10 + 4 + 2}[size] + 4 * 2
    own = [row for row in found if row["family"] == family]
    assert len(own) == pairings * size
    for row in own:
        assert row["logprobs"] <= LIMITS[row["dtype"]], row
    against = [row for row in own if "gradient" in row]
    assert len(against) == pairings
    for row in against:
        assert row["scale"] > 0.01, row
        assert row["gradient"] <= LIMITS[row["dtype"]], row
        assert row["metrics"] <= 1e-5, row
        assert row["keys"], row
        assert row["same_trained"], row
