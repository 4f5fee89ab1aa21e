"""Every switch that saves memory gives, in shards, what it gives in one process, and a checkpoint that the Auto classes load."""

from __future__ import annotations

import json

import pytest
import torch

from tests.core.train.memory_worker import CASES
from tests.ranks import run_ranks
from tests.tiny import tiny_folder, tiny_model


@pytest.mark.slow
def test_switches_in_shards(tmp_path):
    from transformers import AutoModelForImageTextToText

    words = ["-m", "tests.core.train.memory_worker", "qwen3_vl", str(tiny_folder()), str(tmp_path)]
    rows = [json.loads(line) for line in run_ranks(2, words, timeout=200)[0].splitlines() if line.startswith("{")]
    assert [row["case"] for row in rows] == list(CASES)
    for row in rows:
        # The gradients of a pass are equal to the last bit; they are added up in another order.
        assert row["gradient"] <= 1e-5, row
        assert row["norm"] <= 1e-5, row
        assert row["types"] == ["torch.float32"], row
        assert row["names"], row
        low = "bfloat16" in row["case"] or row["case"] == "all"
        # Adam's first step has the size of the learning rate, whatever the gradient: one of rounding may have another sign.
        assert row["weights"] <= 2.1e-3 + (0.02 if low else 0), row
        assert row["logprobs"] <= (0.1 if low else 1e-3), row
        loaded, info = AutoModelForImageTextToText.from_pretrained(tmp_path / row["case"], output_loading_info=True)
        assert not any(info.values()), info
        assert loaded.dtype == (torch.bfloat16 if low else torch.float32)
        base = dict(tiny_model()[2].named_parameters())
        assert any(not torch.equal(base[name], value.float()) for name, value in loaded.named_parameters())
