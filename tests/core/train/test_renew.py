"""An engine that dies gets the policy's weights and is asked again; in a run of several processes, in all of them."""

from __future__ import annotations

import asyncio

import pytest
import torch
from attrs import define, field

from evr1_core.api import EngineError, Request, Rollout, RolloutEngine, Sampling, WeightsLostError
from evr1_core.train.ranks import ALONE
from evr1_core.train.renew import RenewedEngine
from evr1_core.train.split import SplitEngine

ASKED = [Request(uid="u", text="t", clips=(), sampling=Sampling())]


@define(kw_only=True)
class Mortal(RolloutEngine):
    """Dies at the calls that ``deaths`` number, and for good at ``end``."""

    api = 1
    deaths: tuple[int, ...] = ()
    end: int = 0
    log: list[str] = field(factory=list)

    async def start(self, model_path, family, processor, module):
        self.log.append("start")

    async def generate(self, requests):
        self._happens("generate")
        return [[Rollout(text="", token_ids=(1,), logprobs=(0.0,), finish="stop")] for _ in requests]

    async def load_weights(self, weights):
        next(iter(weights))
        self._happens("load")
        for _ in weights:
            pass

    def _happens(self, what):
        self.log.append(what)
        if len(self.log) == self.end:
            raise EngineError("gone for good")
        if len(self.log) in self.deaths:
            raise WeightsLostError("gone")


def renewed(**deaths):
    engine = Mortal(**deaths)
    taken = []

    def weights():
        for name in ("a", "b", "c"):
            taken.append(name)
            yield name, torch.zeros(1)

    return engine, RenewedEngine(engine=engine, weights=weights), taken


def work(engine):
    async def both():
        await engine.start("", None, None, None)
        return await engine.generate(ASKED)

    return asyncio.run(both())


def test_weights_are_given_at_the_start():
    engine, whole, taken = renewed()
    assert len(work(whole)) == 1
    assert engine.log == ["start", "load", "generate"]
    assert taken == ["a", "b", "c"]


def test_a_death_while_sampling():
    engine, whole, taken = renewed(deaths=(3,))
    assert len(work(whole)) == 1
    assert engine.log == ["start", "load", "generate", "load", "generate"]
    assert taken == ["a", "b", "c"] * 2


def test_a_death_while_weights_are_loaded():
    engine, whole, taken = renewed(deaths=(2,))
    assert len(work(whole)) == 1
    assert engine.log == ["start", "load", "load", "generate"]
    assert taken == ["a", "a", "b", "c"]


def test_another_error_ends_it():
    _, whole, _ = renewed(end=3)
    with pytest.raises(EngineError, match="for good"):
        work(whole)


def test_one_of_several_processes_takes_all_weights_whatever_happens_to_its_engine():
    engine, whole, taken = renewed(deaths=(1,))
    split = SplitEngine(engine=engine, encoder=None, ranks=ALONE)
    with pytest.raises(WeightsLostError):
        asyncio.run(split.load_weights(whole.weights()))
    assert taken == ["a", "b", "c"]
