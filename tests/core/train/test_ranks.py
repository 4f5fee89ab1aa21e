"""What processes tell each other, without processes; with them: test_hybrid, test_sharded_memory, and e2e/test_sharded_run."""

from __future__ import annotations

import pytest
import torch

from evr1_core.api import ConfigError, DataError
from evr1_core.rollout.groups import Group, Response
from evr1_core.train.hybrid import filler
from evr1_core.train.ranks import ALONE, Ranks, join, leave
from evr1_core.train.split import assigned, balance_metrics


def together(rank, *shares):
    """A process whose gathering gives these shares."""

    class Fixed(Ranks):
        def gather(self, value):
            return list(shares)

    return Fixed(rank=rank, size=len(shares))


def test_alone_everything_is_ones_own():
    assert ALONE.leads
    assert ALONE.gather(3) == [3]
    assert ALONE.spread([1, 2, 3], lambda items: [2 * item for item in items]) == [2, 4, 6]
    assert ALONE.led(lambda: "x") == "x"
    with ALONE.one_first():
        pass
    leave(ALONE)


def test_results_come_in_the_order_of_the_items():
    seen = []
    ranks = together(1, ["a", "c", "e"], ["b", "d"])
    assert ranks.spread(range(5), lambda items: seen.extend(items) or ["b", "d"]) == ["a", "b", "c", "d", "e"]
    assert seen == [1, 3]
    assert together(0, ["x"], ["y", "z"]).joined(["x"], [1, 0, 1]) == ["y", "x", "z"]
    assert not ranks.leads


def test_the_error_of_one_is_raised_in_all():
    with pytest.raises(DataError, match="row 3"):
        together(0, ["a"], DataError(["row 3"])).spread(range(2), lambda items: ["a"])


def test_one_leads():
    assert together(1, ["x"], []).led(lambda: pytest.fail("the others do not call it")) == "x"


def test_without_torchrun_a_run_is_alone(monkeypatch):
    for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.delenv(name, raising=False)
    assert join(minutes=1) is ALONE
    monkeypatch.setenv("WORLD_SIZE", "1")
    assert join(minutes=1) is ALONE
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(ConfigError, match="RANK, LOCAL_RANK, MASTER_ADDR, MASTER_PORT not set: start with torchrun"):
        join(minutes=1)


def group(length):
    own = filler([])
    return Group(prompt=own.prompt, responses=[Response(text="", token_ids=(1,) * (length - 1), truncated=False)])


def test_groups_are_assigned_by_work():
    groups = [group(length) for length in (100, 10, 60, 50, 90, 10)]
    shares = assigned(groups, 2)
    assert sorted(place for share in shares for place in share) == list(range(6))
    assert [len(share) for share in shares] == [3, 3]
    assert [sum((100, 10, 60, 50, 90, 10)[place] for place in share) for share in shares] == [160, 160]
    assert sorted(map(len, assigned(groups[:5], 2))) in ([1, 4], [2, 3])
    assert assigned(groups[:1], 3) == [[0], [], []]


def test_tokens_of_each_process_before_and_after():
    lengths = [100, 10, 60, 50, 90, 10]
    assert balance_metrics(lengths, [[0, 3, 5], [1, 2, 4]]) == {
        "global_seqlen/min": 150,
        "global_seqlen/max": 170,
        "global_seqlen/minmax_diff": 20,
        "global_seqlen/balanced_min": 160,
        "global_seqlen/balanced_max": 160,
        "global_seqlen/mean": 160,
    }
    assert balance_metrics([7], [[0], [], []])["global_seqlen/balanced_min"] == 0


def test_a_filler_holds_no_banned_id():
    own = filler([0, 1, 3])
    assert own.responses[0].token_ids == (2,)
    assert torch.equal(own.prompt.encoded.input_ids, torch.tensor([2]))
