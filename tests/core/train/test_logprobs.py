"""Log-probabilities and entropies of given tokens, against worked numbers."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from evr1_core.train.logprobs import token_logprobs


def identity(size: int) -> nn.Linear:
    head = nn.Linear(size, size, bias=False, dtype=torch.float64)
    with torch.no_grad():
        head.weight.copy_(torch.eye(size))
    return head


def test_entropy_and_logprob_by_hand():
    hidden = torch.tensor([[0.2, -0.1, 0.4]], dtype=torch.float64)
    chosen, entropy = token_logprobs(hidden, identity(3), torch.tensor([2]), temperature=1.0, banned=[])
    assert float(entropy.detach()) == pytest.approx(1.07850061, abs=1e-7)
    assert float(chosen.detach()) == pytest.approx(0.4 - float(torch.logsumexp(hidden, 1)), abs=1e-9)


def test_banned_tokens_leave_the_normaliser():
    hidden = torch.tensor([[0.2, 9.0, 0.4]], dtype=torch.float64)
    chosen, entropy = token_logprobs(hidden, identity(3), torch.tensor([0]), temperature=2.0, banned=[1])
    p = 1 / (1 + torch.exp(torch.tensor(0.1, dtype=torch.float64)))
    assert float(chosen.detach().exp()) == pytest.approx(float(p))
    assert float(entropy.detach()) == pytest.approx(float(-p * p.log() - (1 - p) * (1 - p).log()))


def test_gradients_are_finite_beside_a_banned_token():
    hidden = torch.tensor([[0.2, 9.0, 0.4]], dtype=torch.float64, requires_grad=True)
    chosen, entropy = token_logprobs(hidden, identity(3), torch.tensor([0]), temperature=1.0, banned=[1])
    (chosen + entropy).sum().backward()
    assert torch.isfinite(hidden.grad).all()
