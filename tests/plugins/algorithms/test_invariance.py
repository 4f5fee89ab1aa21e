"""The update does not depend on how a mini-batch is cut: any partition, any order, one rank or two, padded or packed.

For every algorithm with its losses and ways of averaging, every KL term, the entropy bonus and every kind of rollout weight. The
model is a linear layer in float64, so that all that remains is rounding.
"""

from __future__ import annotations

import attrs
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from evr1_core.api import LossBatch
from evr1_core.api.tensors import AGGREGATIONS, KL_KINDS, entropy_of, rollout_weights, training_loss, value_loss
from evr1_plugins.algorithms.cispo import CISPO
from evr1_plugins.algorithms.grpo import GRPO
from evr1_plugins.algorithms.gspo import GSPO
from evr1_plugins.algorithms.sft import SupervisedFineTuning

LOSSES = {
    "ppo": lambda **options: GRPO(**options),
    "no dual clip": lambda **options: GRPO(dual_clip=None, **options),
    "gspo": lambda aggregation, **options: GSPO(**options),
    "gspo_token": lambda aggregation, **options: GSPO(per_token=True, **options),
    "cispo": lambda **options: CISPO(**options),
    "cispo, both": lambda **options: CISPO(clip_low=0.2, **options),
    "sft": lambda **options: SupervisedFineTuning(),
}
OFF = {
    "on_policy": {},
    "luffy": {"off_mode": "luffy"},
    "is": {"off_mode": "is"},
    "drop": {"off_drop_negative": True},
}
WEIGHTS = {
    "none": None,
    **{
        f"{level} {mode}": {"level": level, "mode": mode, "high": 1.2, "low": 0.8}
        for level in ("token", "sequence", "geometric")
        for mode in ("truncate", "mask")
    },
}
ROWS, TOKENS, WIDTH, VOCABULARY = 6, 5, 4, 7


@attrs.frozen(kw_only=True, eq=False)
class World:
    """A mini-batch: hidden states, sampled ids, and what is known of each token; ``head`` is the parameter."""

    head: torch.Tensor
    hidden: torch.Tensor
    targets: torch.Tensor
    rows: LossBatch  # its log-probabilities and entropies are made anew from the head


def made(seed, weights):
    draw = torch.Generator().manual_seed(seed)

    def noise(*shape):
        return torch.randn(*shape, generator=draw, dtype=torch.float64)

    lengths = torch.randint(0, TOKENS + 1, (ROWS,), generator=draw)
    lengths[0], lengths[1] = TOKENS, 0  # a full row, and one without tokens
    mask = (torch.arange(TOKENS) < lengths.unsqueeze(1)) & (
        (torch.rand(ROWS, TOKENS, generator=draw) < 0.9) | (torch.arange(TOKENS) == 0)
    )
    old = -2 * torch.rand(ROWS, TOKENS, generator=draw, dtype=torch.float64)
    offline = torch.rand(ROWS, generator=draw) < 0.3
    given_weights = None
    if weights is not None:
        given_weights, _ = rollout_weights(old, old + 0.3 * noise(ROWS, TOKENS), mask, counted=~offline, **weights)
    batch = LossBatch(
        logprobs=old,
        old_logprobs=old,
        advantages=noise(ROWS, TOKENS) * mask,
        mask=mask,
        offline=offline,
        global_tokens=int(mask.sum()),
        global_sequences=int(mask.any(dim=1).sum()),
        max_tokens=9,
        weights=given_weights,
        behaviour_logprobs=old + 0.3 * noise(ROWS, TOKENS),
        reference_logprobs=old + 0.5 * noise(ROWS, TOKENS),
    )
    targets = torch.randint(0, VOCABULARY, (ROWS, TOKENS), generator=draw)
    return World(head=noise(VOCABULARY, WIDTH), hidden=noise(ROWS, TOKENS, WIDTH), targets=targets, rows=batch)


def part_of(world, rows, head, packed):
    """The part of the mini-batch that these rows are. Packed: only valid tokens are computed, in one sequence."""
    index = torch.tensor(rows)
    mask, hidden, targets = world.rows.mask[index], world.hidden[index], world.targets[index]
    if packed:
        logprobs = (hidden[mask] @ head.T).log_softmax(-1)
        chosen, entropy = logprobs.gather(1, targets[mask].unsqueeze(1)).squeeze(1), entropy_of(logprobs)
        zeros = torch.zeros(mask.shape, dtype=torch.float64)
        chosen, entropy = zeros.masked_scatter(mask, chosen), zeros.masked_scatter(mask, entropy)
    else:
        logprobs = (hidden @ head.T).log_softmax(-1)
        chosen, entropy = logprobs.gather(2, targets.unsqueeze(2)).squeeze(2), entropy_of(logprobs)
    fields = {
        name: value[index] for name, value in attrs.asdict(world.rows, recurse=False).items() if isinstance(value, torch.Tensor)
    }
    return attrs.evolve(world.rows, **fields | {"logprobs": chosen, "entropy": entropy})


def update(world, ranks, loss_of, packed=False):
    """(loss, gradient, metrics) of an update: parts of each rank add up, the backend averages gradients over ranks."""
    head = world.head.clone().requires_grad_()
    gradients, total = [], torch.zeros((), dtype=torch.float64)
    sums, ratios, maxima = {}, {}, {}
    for parts in ranks:
        gradient = torch.zeros_like(head)
        for rows in parts:
            result = loss_of(part_of(world, rows, head, packed))
            gradient += torch.autograd.grad(len(ranks) * result.loss, head)[0]
            total = total + result.loss.detach()
            for name, value in result.sums.items():
                sums[name] = sums.get(name, 0.0) + float(value)
            for name, (top, count) in result.metrics.items():
                before = ratios.get(name, (0.0, 0.0))
                ratios[name] = (before[0] + float(top), before[1] + float(count))
            for name, value in result.maxima.items():
                maxima[name] = max(maxima.get(name, float("-inf")), float(value))
        gradients.append(gradient)
    means = {name: top / count for name, (top, count) in ratios.items() if count}
    return total, torch.stack(gradients).mean(dim=0), sums | means | maxima


@st.composite
def cuts(draw):
    """Ranks, each a list of parts, each a list of rows: every row once, no rank without a part."""
    order = draw(st.permutations(range(ROWS)))
    places = sorted(draw(st.sets(st.integers(1, ROWS - 1))))
    parts = [order[start:end] for start, end in zip([0, *places], [*places, ROWS], strict=True)]
    if len(parts) == 1 or draw(st.booleans()):
        return [parts]
    border = draw(st.integers(1, len(parts) - 1))
    return [parts[:border], parts[border:]]


def check(world, ranks, packed, loss_of):
    loss, gradient, metrics = update(world, [[list(range(ROWS))]], loss_of)
    for is_packed in {False, packed}:
        other_loss, other_gradient, other_metrics = update(world, ranks, loss_of, is_packed)
        assert abs(other_loss - loss) <= 1e-12 * max(1.0, abs(loss))
        assert (other_gradient - gradient).abs().max() <= 1e-10 * gradient.abs().max()
        assert other_metrics == pytest.approx(metrics, rel=1e-10, abs=1e-12)


CASES = [(name, aggregation) for name in ("ppo", "cispo") for aggregation in AGGREGATIONS]
CASES += [(name, "token-mean") for name in LOSSES if name not in ("ppo", "cispo")]
CUT_AND_TERMS = {
    "seed": st.integers(0, 10_000),
    "ranks": cuts(),
    "packed": st.booleans(),
    "off": st.sampled_from(list(OFF)),
    "weights": st.sampled_from(list(WEIGHTS)),
    "kl": st.sampled_from([None, *KL_KINDS]),
    "entropy_coef": st.sampled_from([0.0, 0.1]),
}


def holds(name, aggregation, seed, ranks, packed, off, weights, kl, entropy_coef):
    algorithm = LOSSES[name](aggregation=aggregation, **OFF[off])

    def loss_of(batch):
        return training_loss(algorithm, batch, kl_kind=kl, kl_coef=0.3, entropy_coef=entropy_coef)

    check(made(seed, WEIGHTS[weights]), ranks, packed, loss_of)


@pytest.mark.parametrize(("name", "aggregation"), CASES)
@settings(max_examples=6, deadline=None)
@given(**CUT_AND_TERMS)
def test_the_update_does_not_depend_on_the_cut(name, aggregation, **drawn):
    holds(name, aggregation, **drawn)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "aggregation"), CASES)
@settings(max_examples=60, deadline=None)
@given(**CUT_AND_TERMS)
def test_nor_in_many_more_draws(name, aggregation, **drawn):
    holds(name, aggregation, **drawn)


@pytest.mark.parametrize(("kl", "weights"), [*((kl, "token truncate") for kl in KL_KINDS), *((None, weight) for weight in WEIGHTS)])
def test_each_term_and_weight_by_itself(kl, weights):
    def loss_of(batch):
        return training_loss(GRPO(), batch, kl_kind=kl, kl_coef=0.3, entropy_coef=0.1)

    check(made(7, WEIGHTS[weights]), [[[1], [4, 0]], [[3], [5, 2]]], True, loss_of)


@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 10_000), ranks=cuts(), packed=st.booleans())
def test_a_critics_loss_does_not_depend_on_the_cut(seed, ranks, packed):
    def loss_of(batch):
        new, old = batch.logprobs, batch.old_logprobs
        return value_loss(new, old, batch.advantages, batch.mask, clip=0.5, tokens=batch.global_tokens)

    check(made(seed, None), ranks, packed, loss_of)


def test_a_mean_of_parts_is_found_out():
    """The check can fail: a loss that averages each part by its own tokens does not pass."""

    def loss_of(batch):
        result = training_loss(GRPO(), batch)
        return attrs.evolve(result, loss=result.loss * batch.global_tokens / max(1, int(batch.mask.sum())))

    with pytest.raises(AssertionError):
        check(made(0, None), [[[0, 1, 2], [3, 4, 5]]], False, loss_of)
