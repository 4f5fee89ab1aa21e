"""What each of two reward components is worth to GRPO and to GDPO when one has a smaller scale than the other.

    python benchmarks/components.py

Draws 500 groups of 8 responses. Accuracy is right or wrong with even odds; the second component is uniform between 0 and its scale,
independent of it; the reward is their sum. Prints, for each scale, how the advantages correlate with either component: 0 means that
the component decides nothing. Prints the table of docs/algorithms.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from attrs import frozen

from evr1_core.api import Algorithm, ScoreBatch
from evr1_core.api.tensors import place_on_last_token
from evr1_core.registry.loading import build_plugin

GROUPS, N, TOKENS = 500, 8, 1
SCALES = (1.0, 0.1, 0.01, 0.001)
OPTIONS: dict[str, dict[str, Any]] = {"grpo": {}, "gdpo": {"weights": {"accuracy": 1.0, "other": 1.0}}}


@frozen(kw_only=True)
class Line:
    """Correlations of one algorithm's advantages with the components."""

    scale: float
    algorithm: str
    accuracy: float
    other: float


def lines(seed: int = 0) -> Iterator[Line]:
    """One for each scale and algorithm."""
    for scale in SCALES:
        batch = drawn(scale, torch.Generator().manual_seed(seed))
        for name, options in OPTIONS.items():
            algorithm: Algorithm = build_plugin("algorithms", f"evr1/{name}", options, place=name)
            values = algorithm.advantages(batch).values[:, 0]
            accuracy, other = (correlation(values, batch.components[part]) for part in ("accuracy", "other"))
            yield Line(scale=scale, algorithm=name, accuracy=accuracy, other=other)


def drawn(scale: float, draw: torch.Generator) -> ScoreBatch:
    """Scored responses whose second component has this scale."""
    rows = GROUPS * N
    accuracy = (torch.rand(rows, generator=draw, dtype=torch.float64) < 0.5).double()
    other = scale * torch.rand(rows, generator=draw, dtype=torch.float64)
    mask = torch.ones(rows, TOKENS, dtype=torch.bool)
    return ScoreBatch(
        rewards=accuracy + other,
        components={"accuracy": accuracy, "other": other},
        group_ids=torch.arange(GROUPS).repeat_interleave(N),
        offline=torch.zeros(rows, dtype=torch.bool),
        judged=torch.ones(rows, dtype=torch.bool),
        mask=mask,
        token_rewards=place_on_last_token(accuracy + other, mask),
    )


def correlation(values: torch.Tensor, component: torch.Tensor) -> float:
    """Of the advantages with what a component gives beyond the mean of its group."""
    groups = component.view(GROUPS, N)
    centred = (groups - groups.mean(dim=1, keepdim=True)).flatten()
    return float(torch.corrcoef(torch.stack([values, centred]))[0, 1])


def table() -> str:
    """Markdown."""
    rows = ["| scale of the second component | algorithm | accuracy | second component |", "|---|---|---|---|"]
    rows += [f"| {line.scale:g} | `{line.algorithm}` | {line.accuracy:.3f} | {line.other:.3f} |" for line in lines()]
    return "\n".join(rows)


if __name__ == "__main__":
    print(table())
