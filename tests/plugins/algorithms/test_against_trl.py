"""The same advantages and losses as TRL's trainers, on random batches, wherever the definitions coincide.

TRL's own methods run, on trainers that were never initialised: they hold the settings that the methods read, sampled token ids,
rewards, and log-probabilities in place of a model. Where the definitions differ, a test says how, and that nothing else differs.
"""

from __future__ import annotations

from collections import defaultdict
from types import SimpleNamespace

import attrs
import pytest
import torch

from evr1_core.api import LossBatch, ScoreBatch
from evr1_core.api.tensors import place_on_last_token, reward_with_kl, rollout_weights, training_loss
from evr1_plugins.algorithms import _groups
from evr1_plugins.algorithms.cispo import CISPO
from evr1_plugins.algorithms.dr_grpo import DrGRPO
from evr1_plugins.algorithms.gdpo import GDPO
from evr1_plugins.algorithms.grpo import GRPO
from evr1_plugins.algorithms.gspo import GSPO
from evr1_plugins.algorithms.rloo import RLOO

pytestmark = pytest.mark.slow  # TRL alone takes ten seconds to import

SEEDS = range(200)
GROUPS, N, T, LIMIT = 3, 4, 7, 16
TRL_EPSILON = 1e-4  # beside the standard deviation; ours is 1e-6


@pytest.fixture(name="trl", scope="module")
def _trl():
    pytest.importorskip("trl", reason="pip install 'evr1[peers]'")
    from trl.trainer import grpo_trainer, rloo_trainer

    return SimpleNamespace(GRPO=grpo_trainer.GRPOTrainer, RLOO=rloo_trainer.RLOOTrainer)


class OneProcess:
    """What the trainers ask of accelerate, for one process."""

    device = torch.device("cpu")
    num_processes = 1
    process_index = 0
    sync_gradients = True

    def gather(self, values):
        return values.unsqueeze(0) if values.dim() == 0 else values

    def reduce(self, values, reduction):
        return values

    def unwrap_model(self, model):
        return model


class Batch:
    """Groups of responses of random length, their rewards, and log-probabilities of four models; one group has no spread."""

    def __init__(self, seed):
        draw = torch.Generator().manual_seed(seed)
        rows = GROUPS * N
        self.lengths = torch.randint(1, T + 1, (rows,), generator=draw)
        self.lengths[0] = T
        self.mask = torch.arange(T) < self.lengths.unsqueeze(1)
        self.rewards = torch.rand(rows, 2, generator=draw, dtype=torch.float64)
        self.rewards[N : 2 * N] = self.rewards[N]
        old = -3 * torch.rand(rows, T, generator=draw, dtype=torch.float64)
        noise = torch.randn(3, rows, T, generator=draw, dtype=torch.float64)
        self.old, self.new, self.reference, self.sampler = old, old + 0.4 * noise[0], old + 0.5 * noise[1], old + 0.3 * noise[2]
        self.advantages = torch.randn(rows, generator=draw, dtype=torch.float64)

    def scored(self, rewards, mask=None):
        mask = self.mask if mask is None else mask
        return ScoreBatch(
            rewards=rewards,
            components={"accuracy": self.rewards[:, 0], "format": self.rewards[:, 1]},
            group_ids=torch.arange(GROUPS).repeat_interleave(N),
            offline=torch.zeros(GROUPS * N, dtype=torch.bool),
            judged=torch.ones(GROUPS * N, dtype=torch.bool),
            mask=mask,
            token_rewards=place_on_last_token(rewards, mask),
        )

    def losses(self, new, **changes):
        values = {
            "logprobs": new,
            "old_logprobs": self.old,
            "advantages": self.advantages.unsqueeze(1) * self.mask,
            "mask": self.mask,
            "offline": torch.zeros(GROUPS * N, dtype=torch.bool),
            "global_tokens": int(self.mask.sum()),
            "global_sequences": GROUPS * N,
            "max_tokens": LIMIT,
            "reference_logprobs": self.reference,
        }
        return LossBatch(**(values | changes))


def stand_in(cls, **settings):
    """A trainer of TRL's that holds what the methods read, and metrics that go nowhere."""
    trainer = object.__new__(cls)
    common = {
        "accelerator": OneProcess(),
        "model": SimpleNamespace(training=True, is_gradient_checkpointing=False),
        "_metrics": {"train": defaultdict(list)},
        "_logs": {"prompt": [], "completion": [], "rewards": defaultdict(list), "advantages": [], "extra": defaultdict(list)},
        "_pending_extra_logs": {},
        "_pending_metrics": {},
        "aux_loss_enabled": False,
        "epsilon_low": 0.2,
        "epsilon_high": 0.28,
        "beta": 0.0,
    }
    for name, value in (common | settings).items():
        setattr(trainer, name, value)
    return trainer


# --- losses


def trl_loss(
    trl, batch, new, *, loss_type="dapo", level="token", delta=None, beta=0.0, correct_kl=False, low=0.2, high=0.28, weights=None
):
    """The loss of GRPOTrainer for log-probabilities ``new``."""
    ids = torch.zeros(batch.mask.shape, dtype=torch.long)
    trainer = stand_in(
        trl.GRPO,
        top_entropy_quantile=1.0,
        off_policy_mask_threshold=None,
        importance_sampling_level=level,
        loss_type=loss_type,
        epsilon_low=low,
        epsilon_high=high,
        beta=beta,
        args=SimpleNamespace(delta=delta, use_bias_correction_kl=correct_kl, steps_per_generation=1),
        use_vllm=weights is not None,
        vllm_importance_sampling_correction=weights is not None,
        current_gradient_accumulation_steps=1,
        max_completion_length=LIMIT,
        _entropy_bonus_enabled=False,
        _get_per_token_logps_and_entropies=lambda *args, **kwargs: (new, torch.zeros_like(new), None),
    )
    inputs = {
        "prompt_ids": ids[:, :1],
        "prompt_mask": ids[:, :1] + 1,
        "completion_ids": ids,
        "completion_mask": batch.mask.long(),
        "advantages": batch.advantages,
        "old_per_token_logps": batch.old,
        "ref_per_token_logps": batch.reference,
        "importance_sampling_ratio": weights,
        "num_items_in_batch": batch.mask.sum(),
    }
    return trainer._compute_loss(trainer.model, inputs)


def both(ours, theirs, batch):
    """(loss, gradient) of ours, then of TRL's, at the same log-probabilities."""
    results = []
    for function in (ours, theirs):
        new = batch.new.clone().requires_grad_()
        loss = function(new)
        results.append((loss.detach(), *torch.autograd.grad(loss, new)))
    return results


def same(ours, theirs, batch, **tolerances):
    (loss, gradient), (their_loss, their_gradient) = both(ours, theirs, batch)
    torch.testing.assert_close(loss, their_loss, **tolerances)
    torch.testing.assert_close(gradient, their_gradient, **tolerances)


LOSSES = {
    "dapo": (GRPO(dual_clip=None), {"loss_type": "dapo"}),
    "dapo, delta": (GRPO(dual_clip=3.0), {"loss_type": "dapo", "delta": 3.0}),
    "grpo": (GRPO(dual_clip=None, aggregation="seq-mean-token-mean"), {"loss_type": "grpo"}),
    "dr_grpo": (DrGRPO(dual_clip=None), {"loss_type": "dr_grpo"}),
    "bnpo": (GRPO(dual_clip=None), {"loss_type": "bnpo"}),
    "gspo": (GSPO(clip_low=0.01, clip_high=0.01), {"loss_type": "grpo", "level": "sequence", "low": 0.01, "high": 0.01}),
    # epsilon_high is the bound itself for cispo, ours is counted from 1
    "cispo": (CISPO(clip_high=0.28), {"loss_type": "cispo", "high": 1.28}),
}


@pytest.mark.parametrize("name", LOSSES)
def test_losses_and_gradients_are_the_same(trl, name):
    algorithm, settings = LOSSES[name]
    for seed in SEEDS:
        batch = Batch(seed)
        same(
            lambda new, batch=batch: training_loss(algorithm, batch.losses(new)).loss,
            lambda new, batch=batch: trl_loss(trl, batch, new, **settings),
            batch,
        )


@pytest.mark.parametrize("correct", [False, True])
def test_kl_in_the_loss(trl, correct):
    """k3 as it is: the same value and gradient while no clamp binds. With TRL's correction, k3 times the ratio has the gradient of
    our k3+ (the reverse KL) and, off-policy, another value: ours logs the KL itself."""
    kind = "k3+" if correct else "k3"
    for seed in SEEDS:
        batch = Batch(seed)

        def ours(new, batch=batch):
            return training_loss(GRPO(dual_clip=None), batch.losses(new), kl_kind=kind, kl_coef=0.1).loss

        def theirs(new, batch=batch):
            return trl_loss(trl, batch, new, beta=0.1, correct_kl=correct)

        (loss, gradient), (their_loss, their_gradient) = both(ours, theirs, batch)
        torch.testing.assert_close(gradient, their_gradient)
        if not correct:
            torch.testing.assert_close(loss, their_loss)


@pytest.mark.parametrize("mode", ["token_truncate", "token_mask", "sequence_truncate", "sequence_mask"])
def test_rollout_correction(trl, mode):
    for seed in SEEDS:
        batch = Batch(seed)
        level, kind = mode.split("_")
        low = 0.7 if kind == "mask" else None
        weights, _ = rollout_weights(batch.old, batch.sampler, batch.mask, level=level, mode=kind, high=1.3, low=low)
        output = trl_advantages(
            trl,
            batch,
            use_vllm=True,
            vllm_importance_sampling_correction=True,
            vllm_importance_sampling_mode=mode,
            vllm_importance_sampling_clip_min=low,
            vllm_importance_sampling_clip_max=1.3,
        )
        theirs = output["importance_sampling_ratio"]
        torch.testing.assert_close(weights, theirs * batch.mask, check_dtype=False, atol=1e-6, rtol=1e-6)  # they are float32
        same(
            lambda new, batch=batch, weights=weights: training_loss(GRPO(dual_clip=None), batch.losses(new, weights=weights)).loss,
            lambda new, batch=batch, weights=theirs: trl_loss(trl, batch, new, weights=weights.double()),
            batch,
            atol=1e-5,
            rtol=1e-5,
        )


def test_rows_without_tokens_are_counted_by_trl(trl):
    """A response without tokens: TRL's mean over responses counts it, ours does not. Scaled by their number, the losses agree."""
    batch = Batch(0)
    batch.mask[[1, 5]] = False
    rows = GROUPS * N
    algorithm = GRPO(dual_clip=None, aggregation="seq-mean-token-mean")

    def ours(new):
        part = batch.losses(new, global_sequences=rows - 2, global_tokens=int(batch.mask.sum()))
        return training_loss(algorithm, part).loss * (rows - 2) / rows

    same(ours, lambda new: trl_loss(trl, batch, new, loss_type="grpo"), batch)


# --- advantages


def trl_advantages(trl, batch, *, cls=None, **settings):
    """What the trainer makes of the rewards: the output of its step of generation, whose samples are given."""
    lengths = batch.lengths.tolist()
    samples = [[1] * length for length in lengths]
    sampler = [row[:length].tolist() for row, length in zip(batch.sampler, lengths, strict=True)]
    prompts = [[1]] * len(lengths)
    generated = (prompts, samples, None, ["x"] * len(lengths), sampler, {}, None, None)
    trainer = stand_in(
        cls or trl.GRPO,
        environment_factories=None,
        environments=None,
        tools=None,
        num_generations=N,
        num_iterations=1,
        reward_funcs=[None, None],
        reward_func_names=["accuracy", "format"],
        reward_weights=settings.pop("reward_weights", torch.tensor([1.0, 0.5], dtype=torch.float64)),
        multi_objective_aggregation=settings.pop("multi_objective_aggregation", "sum_then_normalize"),
        scale_rewards=settings.pop("scale_rewards", "group"),
        mask_truncated_completions=False,
        eos_token_ids=[1],
        pad_to_multiple_of=None,
        _tokenizer=SimpleNamespace(pad_token_id=0),
        processing_class=SimpleNamespace(batch_decode=lambda ids, **_: ["x"] * len(ids)),
        args=SimpleNamespace(
            per_device_train_batch_size=len(lengths),
            steps_per_generation=2,  # so that old log-probabilities are computed
            gradient_accumulation_steps=1,
            gradient_checkpointing_kwargs=None,
            gradient_checkpointing=False,
        ),
        log_multimodal=False,
        ref_model=batch.reference,
        _is_vlm=False,
        _image_pad_token_id=None,
        _video_pad_token_id=None,
        reward_clip_range=None,
        normalize_advantages=False,
        **{"use_vllm": False, "vllm_importance_sampling_correction": False, **settings},
    )
    trainer._generate = lambda _: generated if cls is not trl.RLOO else (prompts, samples, ["x"] * len(lengths))
    trainer._calculate_rewards = lambda *_: batch.rewards.clone()
    trainer._get_per_token_logps_and_entropies = lambda model, *_, **__: (
        batch.reference if model is batch.reference else batch.old,
        None,
        None,
    )
    return trainer._generate_and_score_completions([{"prompt": "x"}] * len(lengths))


@pytest.fixture(name="their_epsilon")
def _their_epsilon(monkeypatch):
    """Our groups with TRL's constant beside the standard deviation: the only difference between the two."""
    monkeypatch.setattr(_groups, "EPSILON", TRL_EPSILON)


def by_row(algorithm, batch):
    values = algorithm.advantages(batch).values
    return values[:, 0]  # every response has a first token


def without_flat(values):
    """Without the group that has no spread: TRL divides its residue of rounding, here 0 or nearly, by the constant."""
    return torch.cat([values[:N], values[2 * N :]])


def test_grpo_advantages(trl, their_epsilon):
    weights = torch.tensor([1.0, 0.5], dtype=torch.float64)
    for seed in SEEDS:
        batch = Batch(seed)
        ours = by_row(GRPO(), batch.scored((batch.rewards * weights).sum(dim=1)))
        theirs = trl_advantages(trl, batch)["advantages"]
        torch.testing.assert_close(without_flat(ours), without_flat(theirs))
        assert not ours[N : 2 * N].any()
        assert theirs[N : 2 * N].abs().max() < 1e-9


def test_grpo_advantages_differ_by_the_constant_alone(trl):
    """With our 1e-6 in place of 1e-4, the advantages of a group of spread s are larger by a factor (s + 1e-4) / (s + 1e-6)."""
    batch = Batch(0)
    rewards = batch.rewards.sum(dim=1)
    ours = by_row(GRPO(), batch.scored(rewards))
    theirs = trl_advantages(trl, batch, reward_weights=torch.ones(2, dtype=torch.float64))["advantages"]
    deviation = rewards.view(GROUPS, N).std(dim=1).repeat_interleave(N)
    factor = (deviation + TRL_EPSILON) / (deviation + 1e-6)
    torch.testing.assert_close(without_flat(ours), without_flat(theirs * factor))


def test_dr_grpo_advantages(trl):
    weights = torch.tensor([1.0, 0.5], dtype=torch.float64)
    for seed in SEEDS:
        batch = Batch(seed)
        ours = by_row(DrGRPO(), batch.scored((batch.rewards * weights).sum(dim=1)))
        torch.testing.assert_close(ours, trl_advantages(trl, batch, scale_rewards="none")["advantages"])


def test_gdpo_advantages(trl, their_epsilon):
    """Batch normalisation: (x - mean) / (std + 1e-4) there, (x - mean) / sqrt(std^2 + 1e-8) here; one value a response in both."""
    for seed in SEEDS:
        batch = Batch(seed)
        ours = by_row(GDPO(weights={"accuracy": 1.0, "format": 0.5}), batch.scored(batch.rewards.sum(dim=1)))
        theirs = trl_advantages(trl, batch, multi_objective_aggregation="normalize_then_sum")["advantages"]
        factor = without_flat(theirs) / without_flat(ours)
        torch.testing.assert_close(without_flat(ours), without_flat(theirs), atol=0, rtol=3e-4)
        assert float(factor.max() - factor.min()) < 1e-9  # one factor for the whole batch


@pytest.mark.parametrize("beta", [0.0, 0.05])
def test_rloo_advantages(trl, beta):
    """With its KL too, which TRL takes off the reward of a response: the sum of k1 over its tokens, as ours adds up."""
    weights = torch.tensor([1.0, 0.5], dtype=torch.float64)
    for seed in SEEDS:
        batch = Batch(seed)
        rewards = (batch.rewards * weights).sum(dim=1)
        scored = batch.scored(rewards)
        token_rewards, _ = reward_with_kl(scored.token_rewards, batch.old, batch.reference, batch.mask, coef=beta, kind="k1")
        scored = attrs.evolve(scored, token_rewards=token_rewards)
        theirs = trl_advantages(trl, batch, cls=trl.RLOO, beta=beta)["advantages"]
        ours = by_row(RLOO(), scored)
        torch.testing.assert_close(ours, theirs)
