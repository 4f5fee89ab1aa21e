"""The parts of the vLLM engine that need no vLLM: options, weights on their way, a process that dies."""

from __future__ import annotations

import asyncio
import os
import re
from pathlib import Path

import pytest
import torch
import yaml
from attrs import define, field

from evr1_core.api import ConfigError, EngineError, ModelError, Request, Sampling, WeightsLostError
from evr1_core.registry.loading import build_plugin
from evr1_plugins.engines import _vllm_process, _vllm_weights, vllm
from evr1_plugins.engines._vllm_buffer import ALIGNED, SHOWN, Buffer, checksum, mapped, tensor_at
from evr1_plugins.engines._vllm_process import GoneError
from evr1_plugins.engines._vllm_settings import arguments, generation_config
from evr1_plugins.engines.vllm import VllmEngine
from tests.tiny import tiny_folder, tiny_model

PAGE = (Path(__file__).parents[3] / "docs" / "rollout.md").read_text("utf-8")


def test_the_settings_of_the_page_can_be_used():
    [block] = re.findall(r"^```yaml\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    choice = yaml.safe_load(block)["rollout"]["engine"]
    engine = build_plugin("engines", choice["name"], choice["options"], place="rollout.engine")
    assert arguments(engine, str(tiny_folder()))["max_model_len"] == choice["options"]["max_model_len"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"tensor_parallel_size": 0}, "must be above 0"),
        ({"gpu_memory_utilization": 1.0}, "must be below 1"),
        ({"dtype": "float8"}, "float8"),
        ({"sleep_level": 3}, "sleep_level"),
        ({"max_model_length": 10}, "did you mean"),
    ],
)
def test_wrong_options_are_named(options, words):
    with pytest.raises(ConfigError, match=words):
        build_plugin("engines", "vllm", options, place="rollout.engine")


def test_arguments_of_vllm_itself_are_passed_on_unless_the_engine_sets_them():
    folder = str(tiny_folder())
    given = arguments(VllmEngine(engine_args={"mm_encoder_tp_mode": "data"}), folder)
    assert given["mm_encoder_tp_mode"] == "data"
    assert given["dtype"] == "float32"
    with pytest.raises(ConfigError, match="logprobs_mode is set by the engine"):
        arguments(VllmEngine(engine_args={"logprobs_mode": "raw_logprobs"}), folder)


def test_ends_are_those_of_the_checkpoint(tmp_path):
    _, _, module = tiny_model()
    assert generation_config(str(tiny_folder())).eos_token_id == module.generation_config.eos_token_id
    module.config.save_pretrained(tmp_path)
    assert generation_config(str(tmp_path)).eos_token_id == module.config.get_text_config().eos_token_id


def test_tensors_come_out_of_the_buffer_as_they_went_in():
    buffer = Buffer(4096)
    values = {
        "a": torch.randn(3, 5),
        "b": torch.randn(7).bfloat16(),
        "c": torch.randn(2, 2, 2).double()[:, 0],
        "d": torch.tensor(3, dtype=torch.int64),
    }
    for name, value in values.items():
        assert buffer.fits(value)
        buffer.put(name, value)
    assert not buffer.fits(torch.zeros(1024))
    data = mapped(buffer.path, buffer.size)
    buffer.unlink()
    assert not buffer.path.exists()
    for entry in buffer.take():
        assert entry.offset % ALIGNED == 0
        out = tensor_at(data, entry.dtype, entry.shape, entry.offset)
        assert torch.equal(out, values[entry.name])
        assert out.dtype == values[entry.name].dtype
        assert checksum(out) == entry.checksum
    assert buffer.fits(torch.zeros(1024))


def test_the_checksum_covers_the_beginning_of_a_tensor():
    value = torch.zeros(SHOWN // 4 + 10)
    before = checksum(value)
    value[-1] = 1
    assert checksum(value) == before
    value[SHOWN // 4 - 1] = 1
    assert checksum(value) != before


@define
class Receiver:
    """In the place of the process: takes what lies in the buffer, as vLLM's workers do."""

    problems: list[str] = field(factory=list)
    got: dict = field(factory=dict)
    sizes: list[int] = field(factory=list)
    data: object = None

    async def call(self, kind, *values):
        if kind == "open":
            self.sizes.append(values[1])
            self.data = mapped(Path(values[0]), values[1])
        if kind == "load":
            for entry in values[0]:
                view = tensor_at(self.data, entry["dtype"], entry["shape"], entry["offset"])
                self.got[entry["name"]] = view.clone()
        return {"load": [], "finish": (self.problems, len(self.got))}.get(kind)


def test_large_tensors_go_alone_and_small_ones_together(monkeypatch):
    monkeypatch.setattr(_vllm_weights, "SIZE", 1024)
    small = [(f"small {number}", torch.randn(16)) for number in range(40)]
    weights = [*small, ("large", torch.randn(1000)), ("last", torch.ones(1))]
    receiver = Receiver()
    assert asyncio.run(_vllm_weights.send(receiver, iter(weights))) == len(weights)
    assert receiver.sizes == [1024, 4000]
    assert all(torch.equal(receiver.got[name], value) for name, value in weights)


def test_problems_are_listed_up_to_a_number():
    with pytest.raises(EngineError, match=r"problem 0; .*problem 9 and 2 more"):
        asyncio.run(_vllm_weights.send(Receiver([f"problem {number}" for number in range(12)]), [("a", torch.ones(1))]))


class FakeProcess:
    """Answers with one token; dies, or refuses, at the calls that its class is told."""

    made: int = 0
    deaths: tuple[int, ...] = ()
    calls: int = 0

    def __init__(self, settings, environment):
        self.gone = False
        type(self).made += 1

    async def started(self, limit):
        return {"cpu": True}

    async def call(self, kind, *values):
        type(self).calls += 1
        if self.calls in self.deaths:
            self.gone = True
        if self.gone:
            raise GoneError
        if kind == "generate" and values[1].temperature > 2:
            raise ModelError("too hot")
        return {"generate": [([5, 1], [-1.0, -0.5])] * 2, "finish": ([], 1), "load": []}.get(kind)

    def tail(self):
        return "Killed"

    def close(self):
        self.gone = True


@pytest.fixture
def started(monkeypatch):
    def start(*deaths):
        fake = type("Fake", (FakeProcess,), {"deaths": deaths})

        async def nothing(*_):
            return None

        monkeypatch.setattr(vllm, "Process", fake)
        monkeypatch.setattr(vllm, "compare", nothing)
        monkeypatch.setattr(vllm, "find_spec", lambda name: name)
        engine = VllmEngine(queue=2)
        family, processor, _ = tiny_model()
        asyncio.run(engine.start(str(tiny_folder()), family, processor, None))
        return engine, fake

    return start


def ask(engine, count=1, **sampling):
    requests = [Request(uid=f"u{number}", text="?", clips=(), sampling=Sampling(n=2, **sampling)) for number in range(count)]
    return asyncio.run(engine.generate(requests))


def test_requests_are_repeated_where_no_weights_were_given(started):
    engine, fake = started(3)
    with pytest.warns(UserWarning, match="anew, once; it wrote:\nKilled"):
        answers = ask(engine, 5)
    assert [len(group) for group in answers] == [2] * 5
    assert fake.made == 2
    assert answers[0][0].token_ids == (5, 1)


def test_a_death_with_given_weights_asks_for_them(started):
    engine, fake = started(3 + 2)
    weights = [("a", torch.ones(1))]
    asyncio.run(engine.load_weights(weights))
    with pytest.warns(UserWarning, match="anew"), pytest.raises(WeightsLostError):
        ask(engine)
    with pytest.raises(WeightsLostError):
        ask(engine)
    asyncio.run(engine.load_weights(weights))
    assert len(ask(engine)) == 1
    assert fake.made == 2


def test_the_second_death_is_an_error(started):
    engine, _ = started(1, 3)
    with pytest.warns(UserWarning, match="anew"):
        ask(engine)
    with pytest.raises(EngineError, match="died again; it wrote:\nKilled"):
        ask(engine)


def test_a_refused_request_is_named(started):
    engine, _ = started()
    with pytest.raises(ModelError, match="u0: too hot"):
        ask(engine, temperature=3.0)


def test_without_vllm_it_says_how_to_get_it(monkeypatch):
    monkeypatch.setattr(vllm, "find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"pip install 'evr1\[vllm\]'"):
        asyncio.run(VllmEngine().start("", None, None, None))


def test_a_process_that_cannot_start_says_what_it_wrote(monkeypatch):
    monkeypatch.setattr(_vllm_process, "SERVER", "evr1_no_such_module")
    process = _vllm_process.Process({}, {})
    with pytest.raises(EngineError, match=r"could not be started(.|\n)*evr1_no_such_module"):
        asyncio.run(process.started(30.0))
    assert process.gone
    with pytest.raises(ProcessLookupError):
        os.killpg(process.pid, 0)


def test_the_process_knows_nothing_of_torchruns_group():
    kept = {"PATH": "p", "CUDA_VISIBLE_DEVICES": "0"}
    group = {"RANK": "1", "LOCAL_RANK": "1", "MASTER_PORT": "1", "TORCHELASTIC_RUN_ID": "x"}
    assert _vllm_process._own(kept | group) == kept
