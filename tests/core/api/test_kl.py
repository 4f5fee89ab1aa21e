"""What the estimators are worth on average, and what happens at the edges."""

from __future__ import annotations

import pytest
import torch

from evr1_core.api.tensors import (
    KL_KINDS,
    KLController,
    exact_entropy,
    full_kl,
    kl_kind_of,
    mean_kl,
    token_kl,
    training_loss,
)

Z = [0.2, -0.1, 0.4]
Q = [0.0, 0.5, -0.3]
REVERSE = [-0.00205667, -0.20159464, 0.20365132]


def expected_gradient(kind, behaviour=None):
    """The gradient on average over tokens that the policy, or another one, samples: all three tokens, weighted by their chance."""
    logits = torch.tensor(Z, dtype=torch.float64, requires_grad=True)
    logprobs, reference = logits.log_softmax(0), torch.tensor(Q, dtype=torch.float64).log_softmax(0)
    old = logprobs.detach() if behaviour is None else torch.tensor(behaviour, dtype=torch.float64).log_softmax(0)
    loss = (old.exp() * token_kl(logprobs, reference, kind, None if behaviour is None else old)).sum()
    return torch.autograd.grad(loss, logits)[0].tolist()


@pytest.mark.parametrize(
    ("kind", "gradient"),
    [
        ("k1", [0.0, 0.0, 0.0]),
        ("k2", REVERSE),
        ("k1+", REVERSE),
        ("k3+", REVERSE),
        ("k3", [0.04255921, -0.23632576, 0.19376655]),
    ],
)
def test_gradients_on_average(kind, gradient):
    assert expected_gradient(kind) == pytest.approx(gradient, abs=1e-6)


@pytest.mark.parametrize("kind", ["k1+", "k3+"])
def test_the_ratio_corrects_samples_of_another_policy(kind):
    assert expected_gradient(kind, behaviour=[1.0, 0.0, -1.0]) == pytest.approx(REVERSE, abs=1e-6)


def test_the_exact_gradient_is_the_reverse_one():
    logits = torch.tensor(Z, dtype=torch.float64, requires_grad=True)
    (gradient,) = torch.autograd.grad(full_kl(logits, torch.tensor(Q, dtype=torch.float64)), logits)
    assert gradient.tolist() == pytest.approx(REVERSE, abs=1e-6)


def test_banned_ids_take_no_part():
    banned = float("-inf")
    logits = torch.tensor([*Z, banned], dtype=torch.float64, requires_grad=True)
    kl = full_kl(logits, torch.tensor([*Q, banned], dtype=torch.float64))
    entropy = exact_entropy(logits)
    (gradient,) = torch.autograd.grad(kl + entropy, logits)
    assert kl.item() == pytest.approx(0.14084707, abs=1e-6)
    assert entropy.item() == pytest.approx(1.07850061, abs=1e-6)
    assert bool(gradient.isfinite().all())
    assert gradient[3] == 0


@pytest.mark.parametrize("kind", KL_KINDS)
def test_far_tokens_stay_finite_in_half_precision(kind):
    logprobs = torch.tensor([-80.0, -1e-4], dtype=torch.bfloat16, requires_grad=True)
    value = token_kl(logprobs, torch.tensor([-1e-4, -80.0], dtype=torch.bfloat16), kind, torch.tensor([-60.0, -1.0]))
    assert value.dtype == torch.float32
    (gradient,) = torch.autograd.grad(value.sum(), logprobs)
    assert bool(value.isfinite().all())
    assert bool(gradient.isfinite().all())


@pytest.mark.parametrize(
    ("place", "kind", "meant"),
    [
        ("loss", "auto", "k3+"),
        ("reward", "auto", "k1"),
        ("loss", "low_var_kl", "k3"),
        ("loss", "mse", "k2"),
        ("reward", "kl", "k1"),
    ],
)
def test_names_of_kinds(place, kind, meant):
    assert kl_kind_of(place, kind) == meant


@pytest.mark.parametrize("kind", ["full", "k4"])
def test_kinds_that_tokens_cannot_give(kind):
    with pytest.raises(ValueError, match="cannot be had from log-probabilities of tokens"):
        kl_kind_of("loss", kind)


def test_rows_without_tokens_leave_the_mean():
    kl = torch.tensor([[1.0, 3.0], [float("inf"), 9.0], [4.0, 9.0]])
    assert float(mean_kl(kl, torch.tensor([[True, True], [False, False], [True, False]]))) == 3.0


def test_a_fixed_factor_stays():
    controller = KLController(coef=0.1)
    controller.update(5.0, 512)
    assert controller.coef == 0.1


def test_terms_without_their_inputs_are_our_own_mistake():
    from evr1_core.api import LossBatch
    from evr1_plugins.algorithms.grpo import GRPO

    one = torch.zeros(1, 1)
    batch = LossBatch(
        logprobs=one,
        old_logprobs=one,
        advantages=one,
        mask=one == 0,
        offline=one[0] > 0,
        global_tokens=1,
        global_sequences=1,
        max_tokens=1,
    )
    with pytest.raises(ValueError, match="reference_logprobs"):
        training_loss(GRPO(), batch, kl_kind="k3")
    with pytest.raises(ValueError, match="entropy"):
        training_loss(GRPO(), batch, entropy_coef=0.1)
