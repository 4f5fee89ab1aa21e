"""The contract of rollout engines."""

from __future__ import annotations

import asyncio
from pathlib import Path

import attrs

from evr1_core.api import ModelFamily, Prompt, Request, Rollout, RolloutEngine, Sampling

LIMIT = 6


def check_engine(engine: RolloutEngine, family: ModelFamily, folder: Path) -> None:
    """Answers two prompts with the checkpoint in ``folder``. Demands: n responses for each request in order, within the limit, with
    one log-prob a token and no banned id; a seed fixes a request's draws whatever stands beside it; greedy is one answer."""
    from transformers import AutoProcessor

    asyncio.run(_check(engine, family, folder, AutoProcessor.from_pretrained(folder, local_files_only=True)))


async def _check(engine: RolloutEngine, family: ModelFamily, folder: Path, processor: object) -> None:
    module = family.load(str(folder))
    banned = family.banned_ids(processor)
    await engine.start(str(folder), family, processor, module)
    try:
        sampling = Sampling(n=3, temperature=1.0, max_tokens=LIMIT, seed=7)
        requests = [
            Request(uid=f"testing/{i}", text=family.render(processor, Prompt(parts=(text,)), ()), clips=(), sampling=sampling)
            for i, text in enumerate(("What is shown?", "How many shapes are there in the picture on the left?"))
        ]
        both = await engine.generate(requests)
        assert len(both) == len(requests), f"{len(requests)} requests and {len(both)} answers"
        for request, group in zip(requests, both, strict=True):
            _check_group(request, group, banned)
        alone = await engine.generate(requests[1:])
        assert _tokens(alone[0]) == _tokens(both[1]), "a request with a seed draws differently beside another request"
        greedy = [attrs.evolve(request, sampling=attrs.evolve(sampling, temperature=0.0, seed=None)) for request in requests]
        for group in await engine.generate(greedy):
            assert len(set(_tokens(group))) == 1, "greedy responses to one prompt differ"
        await engine.sleep()
        await engine.wake()
    finally:
        await engine.close()


def _tokens(group: list[Rollout]) -> list[tuple[int, ...]]:
    return [rollout.token_ids for rollout in group]


def _check_group(request: Request, group: list[Rollout], banned: frozenset[int]) -> None:
    assert len(group) == request.sampling.n, f"{request.uid}: {len(group)} responses, {request.sampling.n} were asked for"
    for rollout in group:
        assert 1 <= len(rollout.token_ids) <= LIMIT, (
            f"{request.uid}: {len(rollout.token_ids)} tokens, at most {LIMIT} were asked for"
        )
        assert not banned & set(rollout.token_ids), f"{request.uid}: a banned id was sampled"
        assert rollout.finish == "stop" or len(rollout.token_ids) == LIMIT, f"{request.uid}: cut off before the limit"
        if rollout.logprobs is not None:
            assert len(rollout.logprobs) == len(rollout.token_ids), f"{request.uid}: {len(rollout.logprobs)} log-probs"
            assert all(value <= 1e-6 for value in rollout.logprobs), f"{request.uid}: a log-prob above 0"
