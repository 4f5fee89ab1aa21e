"""One process of several that hold a model in shards: batches of every modality, against the model in one piece.

Called with names of families, each followed by the folder of its tiny checkpoint. For every case each process prints a line of JSON
about its log-probs, and one of them about the gradients too.
"""

from __future__ import annotations

import copy
import itertools
import json
import sys

import torch

from evr1_core.api import Sample
from evr1_core.config.schema import RolloutConfig, RunConfig, TrainConfig
from evr1_core.registry.loading import load_class, resolve
from evr1_core.rollout.groups import Group, Response, encode_prompt
from evr1_core.testing.models import PROMPTS, made_up_clips
from evr1_core.train.policy import Credited, Policy
from evr1_core.train.ranks import join, leave
from evr1_core.train.shard import whole
from evr1_plugins.algorithms.grpo import GRPO

ANSWERS = ((109, 105, 111), (107,))
KINDS = ("text", "image", "video", "mixed")


def main(*words: str) -> None:
    torch.set_num_threads(1)
    ranks = join(minutes=5)
    for name, folder in zip(words[::2], words[1::2], strict=True):
        for row in compared(name, folder, ranks):
            print(json.dumps({"family": name, **row}), flush=True)
    leave(ranks)


def compared(name, folder, ranks):
    """What a process finds of each case. The reference is computed by one process while the others are at the next case."""
    from transformers import AutoProcessor

    family = load_class(resolve("models", name))()
    processor = AutoProcessor.from_pretrained(folder)
    groups = {kind: group(family, processor, kind) for kind in KINDS}
    for dtype, frozen, every in (
        (torch.float64, False, 1),
        (torch.float64, True, ranks.size - 1),
        (torch.float32, False, 5),
        (torch.float32, True, 10),
    ):
        module = family.load(folder).to(dtype)
        config = RunConfig(
            train=TrainConfig(groups_per_batch=1, freeze_vision=frozen, max_grad_norm=1e9), rollout=RolloutConfig(temperature=0.8)
        )
        alone = Policy(copy.deepcopy(module), family, processor, config, total_updates=1)
        shards = Policy(module, family, processor, config, total_updates=1, ranks=ranks)
        for number, case in enumerate(cases(ranks.size, every)):
            own = [groups[kind] for kind in case[ranks.rank]]
            together = [groups[kind] for share in case for kind in share]
            first = sum(map(len, case[: ranks.rank]))
            metrics = shards.backward(GRPO(), credited(own, first))
            theirs = [None if each.grad is None else whole(each.grad) for each in shards.module.parameters()]
            logprobs = shards.logprobs(own)
            shards.optimizer._adamw.zero_grad()
            apart = float((logprobs - alone.logprobs(own)).abs().max()) if own else 0.0
            row = {"case": case, "dtype": str(dtype), "frozen": frozen, "logprobs": apart}
            if number % ranks.size == ranks.rank:
                row |= against(alone, together, theirs, metrics)
            yield row


def against(alone, together, theirs, metrics):
    """Gradients and metrics of shards, compared with those of one process that has all the groups."""
    expected = alone.backward(GRPO(), credited(together, 0))
    ours = [each.grad for each in alone.module.parameters()]
    scale = largest(ours, [None] * len(ours))
    row = {
        "gradient": largest(ours, theirs) / scale,
        "scale": scale,
        "metrics": max(abs(metrics[key] - value) for key, value in expected.items()),
        "keys": sorted(metrics) == sorted(expected),
        "same_trained": [each is None for each in ours] == [each is None for each in theirs],
    }
    alone.optimizer._adamw.zero_grad()
    return row


def cases(size, every):
    """What each process holds: ``every`` so many pairings of modalities, with one process that has more groups than the others, or
    groups when the others have none."""
    pairs = itertools.product(KINDS, repeat=2) if size == 2 else itertools.combinations_with_replacement(KINDS, size)
    for number, kinds in enumerate(pairs):
        if number % every == 0:
            more = number % size  # this process has two micro-batches
            yield [[kind] + [KINDS[number % 4]] * (rank == more) for rank, kind in enumerate(kinds)]
    yield [["video", "text"]] + [[]] * (size - 1)
    yield [[]] * (size - 1) + [["text"]]


def group(family, processor, kind):
    image, video = made_up_clips(family)
    prompt = PROMPTS[kind]
    clips = [image if media.kind == "image" else video for media in prompt.media]
    sample = Sample(uid=kind, task="t", problem="", answer="")
    encoded = encode_prompt(family, processor, sample, prompt, clips, max_tokens=10_000)
    return Group(prompt=encoded, responses=[Response(text="", token_ids=ids, truncated=False) for ids in ANSWERS])


def credited(groups, first):
    """Groups with advantages that depend on the place of the group among those of all processes."""
    rows = torch.tensor([[1.0 + place, -0.5 - place] for place in range(first, first + len(groups))]).flatten()
    trained = torch.ones(len(rows), dtype=torch.bool)
    return Credited(groups=groups, advantages=rows.unsqueeze(1).expand(-1, 3).double(), trained=trained)


def largest(ours, theirs):
    """Largest difference; None is 0."""
    pairs = [(a, b) for a, b in zip(ours, theirs, strict=True) if a is not None or b is not None]
    differences = [((0.0 if a is None else a) - (0.0 if b is None else b)).abs().max() for a, b in pairs]
    return float(torch.stack(differences).max())  # of tensors: a NaN stays one


if __name__ == "__main__":
    main(*sys.argv[1:])
