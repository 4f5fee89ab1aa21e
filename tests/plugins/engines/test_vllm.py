"""vLLM itself, in its build for CPUs: the same prompts, positions, log-probs and greedy responses as in training."""

from __future__ import annotations

import asyncio
import os
import signal
from importlib.util import find_spec

import pytest
import torch
from attrs import define

from evr1_core.api import EngineError, Media, ModelError, Prompt, Request, Sample, Sampling, WeightsLostError
from evr1_core.config.schema import ModelConfig, RolloutConfig, RunConfig, TrainConfig
from evr1_core.registry.loading import load_class, resolve
from evr1_core.rollout.groups import Group, Response, encode_prompt, sampled
from evr1_core.train.policy import Credited, Policy
from evr1_plugins.engines._vllm_probe import compare
from evr1_plugins.engines.hf import HuggingFaceEngine
from evr1_plugins.engines.vllm import VllmEngine
from tests.plugins.models.made_up import CASES, FAMILIES, clips_of
from tests.tiny import image_clip, tiny_folder, tiny_model, video_clip

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(900),
    pytest.mark.skipif(find_spec("vllm") is None, reason="vLLM is not installed (make setup-vllm)"),
]

OPTIONS = {"enforce_eager": True, "max_model_len": 4096, "cache_gb": 0.5, "start_limit": 900.0}
TIMED = {
    "variable rate": (0.0, 0.2, 0.9, 1.0, 3.5, 4.0),
    "a second apart": (0.0, 1.0, 2.0, 3.0),
    "odd": (0.0, 0.5, 1.0, 1.5, 2.0),
    "long": tuple(number / 2 for number in range(24)),
}


@define
class Live:
    """vLLM with the weights of a trained policy."""

    name: str
    engine: VllmEngine
    family: object
    processor: object
    policy: Policy
    runner: asyncio.Runner

    def prompt(self, clips, words="What is it?"):
        media = tuple(Media(kind=clip.kind, path="m") for clip in clips)
        sample = Sample(uid=words, task="t", problem=words, answer="A", media=media)
        return encode_prompt(self.family, self.processor, sample, Prompt(parts=(*media, words)), clips, 4000)

    def ask(self, prompts, engine=None, **sampling):
        requests = [
            Request(uid=prompt.sample.uid, text=prompt.text, clips=prompt.clips, sampling=Sampling(**{"seed": number, **sampling}))
            for number, prompt in enumerate(prompts)
        ]
        return self.runner.run((engine or self.engine).generate(requests))

    def sync(self):
        self.runner.run(self.engine.load_weights(self.policy.weights()))


def prompts_of(live, count):
    """Text, image, video and mixed prompts in turn."""
    side = live.family.grid.factor
    kinds = (
        lambda seed: (),
        lambda seed: (image_clip(2 * side, side, seed),),
        lambda seed: (video_clip(4, side, 2 * side, seed=seed),),
        lambda seed: (video_clip(3, side, side, seed=seed), image_clip(side, side, seed), video_clip(6, side, side, seed=seed)),
    )
    return [live.prompt(kinds[number % 4](number), f"What is number {number}?") for number in range(count)]


@pytest.fixture(scope="module", params=FAMILIES)
def live(request):
    name = request.param
    dtype = "bfloat16" if name == "qwen3_5" else "float32"  # vLLM's recurrent layers on a CPU know no other
    family = load_class(resolve("models", name))(**({"past_time": True} if name in ("qwen2_vl", "qwen2_5_vl") else {}))
    processor = tiny_model(name)[1]
    config = RunConfig(
        model=ModelConfig(path=str(tiny_folder(name)), dtype=dtype),
        rollout=RolloutConfig(temperature=0.8, max_response_tokens=24),
        train=TrainConfig(lr=2e-3, groups_per_batch=16),
    )
    policy = Policy(family.load(str(tiny_folder(name))), family, processor, config, total_updates=60)
    with asyncio.Runner() as runner:
        engine = VllmEngine(dtype=dtype, **OPTIONS)
        runner.run(engine.start(str(tiny_folder(name)), family, processor, None))
        try:
            one = Live(name, engine, family, processor, policy, runner)
            _train(one)
            one.sync()
            yield one
        finally:
            runner.run(engine.close())


def _train(live):
    """Supervised steps on one answer for each of the prompts, so that the policy is half sure of what it says."""
    tokenizer = live.processor.tokenizer
    groups = []
    for number, prompt in enumerate(prompts_of(live, 16)):
        ids = tokenizer(f"number {number} is what it is, and {number * 7}", add_special_tokens=False)["input_ids"]
        response = Response(text="", token_ids=(*ids, tokenizer.eos_token_id), truncated=False, offline=True)
        groups.append(Group(prompt=prompt, responses=[response]))
    width = max(len(group.responses[0].token_ids) for group in groups)
    work = Credited(groups=groups, advantages=torch.ones(len(groups), width), trained=torch.ones(len(groups), dtype=torch.bool))
    algorithm = load_class(resolve("algorithms", "sft"))()
    for _ in range(40 if live.name == "qwen3_5" else 10):  # in bfloat16, an unsure policy has tokens of equal probability
        metrics = live.policy.update(algorithm, work)
    assert metrics["actor/pg_loss"] < 1.5


def difference(live, prompts, **sampling):
    """|Δ| of every sampled token's log-prob between vLLM and a training forward."""
    drawn = live.ask(prompts, **{"temperature": 0.8, "max_tokens": 24, **sampling})
    groups = [Group(prompt=prompt, responses=[sampled(one) for one in own]) for prompt, own in zip(prompts, drawn, strict=True)]
    flat = [one for own in drawn for one in own]
    rows = zip(live.policy.logprobs(groups), flat, strict=True)
    return torch.cat([(row[: len(one.token_ids)] - torch.tensor(one.logprobs)).abs() for row, one in rows])


def test_logprobs_are_the_trainers(live):
    apart = difference(live, prompts_of(live, 12), n=4)
    print(f"{live.name}: mean {apart.mean():.2e}, max {apart.max():.2e}, {len(apart)} tokens")
    assert float(apart.mean()) <= (3e-2 if live.name == "qwen3_5" else 1e-3)
    assert live.name == "qwen3_5" or float(apart.max()) <= 1e-2


def test_greedy_responses_are_those_of_the_live_model(live):
    prompts = prompts_of(live, 40)
    other = HuggingFaceEngine()
    module = live.family.load(str(tiny_folder(live.name)), dtype=live.engine.dtype)
    live.runner.run(other.start("", live.family, live.processor, module))
    values = {name: value.clone() for name, value in live.policy.weights()}
    for name, parameter in module.named_parameters():
        parameter.data.copy_(values[name])
    ours, theirs = (live.ask(prompts, engine, temperature=0.0, max_tokens=24) for engine in (live.engine, other))
    same = sum(a[0].token_ids == b[0].token_ids for a, b in zip(ours, theirs, strict=True))
    print(f"{live.name}: {same} of {len(prompts)} greedy responses are the same")
    assert same >= 0.95 * len(prompts)
    assert ours[0][0].text == theirs[0][0].text


@pytest.mark.parametrize("case", [*CASES, *TIMED])
def test_prompts_and_positions_are_those_of_training(live, case):
    side = live.family.grid.factor
    clips = (video_clip(len(TIMED[case]), side, 2 * side, times=TIMED[case]),) if case in TIMED else clips_of(case, side)
    prompt = live.prompt(clips)
    given = live.family.engine_input(prompt.text, prompt.clips)
    tokens, positions = live.runner.run(live.engine._process.call("positions", given))
    assert tokens == prompt.encoded.input_ids.tolist()
    assert positions == prompt.position_ids.tolist()


@pytest.mark.parametrize("live", ["qwen2_vl", "qwen2_5_vl"], indirect=True)
def test_other_positions_than_in_training_are_an_error(live):
    family = type(live.family)(past_time=False)
    with pytest.raises(ModelError, match="past_time: true"):
        live.runner.run(compare(live.engine._process, family, live.processor))


def test_responses_end_as_asked_and_hold_no_banned_id(live):
    sampling = {"n": 32, "temperature": 2.0, "max_tokens": 40}
    [group] = live.ask([live.prompt(())], **sampling)
    stops = {live.processor.tokenizer.eos_token_id, live.processor.tokenizer.pad_token_id}
    drawn = {token for one in group for token in one.token_ids}
    assert len(group) == 32
    assert not drawn & live.family.banned_ids(live.processor)
    assert {one.finish for one in group} == {"stop", "length"}
    for one in group:
        assert one.finish == "stop" or len(one.token_ids) == 40
        assert (one.token_ids[-1] in stops) == (one.finish == "stop")
        assert not stops & set(one.token_ids[:-1])
        assert len(one.logprobs) == len(one.token_ids)
        assert "<|im_end|>" not in one.text
    assert live.ask([live.prompt(())], **sampling) == [group]


@pytest.mark.parametrize("live", ["qwen2_vl", "qwen2_5_vl", "qwen3_vl"], indirect=True)
def test_responses_to_a_prompt_share_what_was_computed_for_it(live):
    side = 4 * live.family.grid.factor
    prompt = live.prompt((video_clip(64, side, side),))
    assert prompt.num_tokens > 512

    def hits():
        return live.runner.run(live.engine._process.call("counts"))["vllm:prefix_cache_hits"]

    before = hits()
    live.ask([prompt], n=8, max_tokens=4)
    shared = (hits() - before) / (7 * prompt.num_tokens)
    print(f"{live.name}: {shared:.2f} of the prompt's tokens were not computed again")
    assert shared > 0.5


@pytest.mark.parametrize("live", ["qwen3_vl"], indirect=True)
def test_a_dead_vllm_is_started_anew_once_and_has_the_current_weights(live):
    prompts = prompts_of(live, 8)

    async def killed_meanwhile():
        requests = [Request(uid="?", text=each.text, clips=each.clips, sampling=Sampling(max_tokens=3000)) for each in prompts]
        asyncio.get_running_loop().call_later(0.05, os.kill, live.engine._process.pid, signal.SIGKILL)
        return await live.engine.generate(requests)

    with pytest.warns(UserWarning, match="started anew"), pytest.raises(WeightsLostError):
        live.runner.run(killed_meanwhile())
    with pytest.raises(WeightsLostError, match="does not have"):
        live.ask(prompts)
    live.sync()
    assert float(difference(live, prompts, n=2).max()) < 1e-2  # the policy is not what the checkpoint holds


@pytest.mark.parametrize("live", ["qwen3_vl"], indirect=True)
def test_wrong_names_are_errors_and_not_sampled_with(live):
    values = list(live.policy.weights())
    name, value = next((name, value) for name, value in values if name.endswith("layers.1.self_attn.k_proj.weight"))
    rest = [(other, each) for other, each in values if other != name]
    with pytest.raises(EngineError, match=r"layers\.1\.self_attn\.qkv_proj\.weight: missing"):
        live.runner.run(live.engine.load_weights(rest))
    with pytest.raises(EngineError, match=r"model\.language_model\.nose\.weight: unexpected"):
        live.runner.run(live.engine.load_weights([*values, ("model.language_model.nose.weight", value)]))
    live.sync()
    assert float(difference(live, prompts_of(live, 4), n=2).max()) < 1e-2
    with pytest.raises(EngineError, match=f"{name}: unexpected"):
        live.runner.run(live.engine.load_weights([*rest, (name, value[:, :-1])]))
    with pytest.raises(WeightsLostError, match="does not have"):
        live.ask(prompts_of(live, 1))


@pytest.mark.parametrize("live", ["qwen3_vl"], indirect=True)
def test_the_second_death_ends_the_run(live):
    os.killpg(live.engine._process.pid, signal.SIGKILL)
    live.engine._process._child.wait()
    with pytest.raises(EngineError, match="died again"):
        live.sync()


def test_tied_embeddings_are_sent_once_and_used_twice(tmp_path):
    """A checkpoint whose head is its embedding, with weights that are twice those that vLLM has read from disk."""
    family, processor, _ = tiny_model("qwen3_vl")
    module = family.load(str(tiny_folder("qwen3_vl")))
    module.config.tie_word_embeddings = module.config.text_config.tie_word_embeddings = True
    module.tie_weights()
    module.save_pretrained(tmp_path)
    processor.save_pretrained(tmp_path)
    policy = Policy(family.load(str(tmp_path)), family, processor, RunConfig(), total_updates=1)
    embedding = policy.module.get_input_embeddings().weight
    assert policy.module.get_output_embeddings().weight is embedding
    with torch.no_grad():
        embedding.mul_(2.0)
    assert not any("lm_head" in name for name, _ in policy.weights())
    engine = VllmEngine(**OPTIONS)
    with asyncio.Runner() as runner:
        try:
            runner.run(engine.start(str(tmp_path), family, processor, None))
            live = Live("qwen3_vl", engine, family, processor, policy, runner)
            live.sync()
            assert float(difference(live, prompts_of(live, 4), temperature=1.0, n=2).max()) < 1e-3
        finally:
            runner.run(engine.close())
