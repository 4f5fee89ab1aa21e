"""Low-rank adapters: what is trained, what engines and readers of checkpoints see, and what peft makes of the files."""

from __future__ import annotations

import copy

import pytest
import torch

from evr1_core.api import ConfigError, ModelError
from evr1_core.config.schema import LoraConfig, ModelConfig, RolloutConfig, RunConfig, TrainConfig
from evr1_core.train.policy import Policy
from evr1_plugins.algorithms.grpo import GRPO
from tests.core.train.hybrid_worker import credited, group
from tests.tiny import tiny_folder, tiny_model

peft = pytest.importorskip("peft")


def policy(family="qwen3_vl", lora=None, **train):
    plugin, processor, _ = tiny_model(family)
    config = RunConfig(
        train=TrainConfig(groups_per_batch=1, lr=0.01, **train),
        rollout=RolloutConfig(temperature=0.8),
        model=ModelConfig(path=str(tiny_folder(family))),
        lora=lora or LoraConfig(rank=4),
    )
    return Policy(plugin.load(str(tiny_folder(family))), plugin, processor, config, total_updates=10)


def groups(own):
    return [group(own.family, own.processor, kind) for kind in ("mixed", "text")]


def trained(own, steps=2):
    for _ in range(steps):
        own.update(GRPO(), credited(groups(own), 0))
    return own


@pytest.mark.parametrize("family", ["qwen2_5_vl", "qwen3_vl", "qwen3_5"])
def test_a_new_adapter_changes_nothing_and_alone_is_trained(family):
    own = policy(family)
    config = RunConfig(rollout=RolloutConfig(temperature=0.8))
    base = Policy(copy.deepcopy(tiny_model(family)[2]), own.family, own.processor, config, total_updates=1)
    torch.testing.assert_close(own.logprobs(groups(own)), base.logprobs(groups(own)), atol=1e-5, rtol=0)
    names = [name for name, parameter in own.module.named_parameters() if parameter.requires_grad]
    assert names
    assert all(".lora_" in name and ".visual." not in name and "lm_head" not in name for name in names)
    before = {name: parameter.detach().clone() for name, parameter in own.module.named_parameters()}
    trained(own)
    moved = {name for name, parameter in own.module.named_parameters() if not torch.equal(parameter, before[name])}
    assert moved == set(names)


def test_engines_get_the_names_and_shapes_of_the_base_with_merged_values():
    own = trained(policy())
    base = dict(tiny_model()[2].named_parameters())
    weights = dict(own.weights())
    assert {name: value.shape for name, value in weights.items()} == {name: value.shape for name, value in base.items()}
    name = "model.language_model.layers.1.mlp.down_proj"
    layer = own.module.get_submodule(name)
    first, second = layer.lora_A["default"].weight, layer.lora_B["default"].weight
    assert first.shape[0] == 4
    expected = base[f"{name}.weight"] + 16.0 / 4 * second @ first
    torch.testing.assert_close(weights[f"{name}.weight"], expected)
    assert not torch.equal(weights[f"{name}.weight"], base[f"{name}.weight"])
    changed = {name for name, value in weights.items() if not torch.equal(value, base[name])}
    assert not any("visual" in name or "norm" in name for name in changed)


@pytest.mark.parametrize("family", ["qwen3_vl", "qwen3_5"])
def test_saved_models_are_merged_and_peft_reads_the_adapter(family, tmp_path):
    from transformers import AutoModelForImageTextToText

    own = trained(policy(family))
    own.save(tmp_path / "model")
    expected = own.logprobs(groups(own))
    for module in (
        own.family.load(str(tmp_path / "model")),
        peft.PeftModel.from_pretrained(
            AutoModelForImageTextToText.from_pretrained(tiny_folder(family)), str(tmp_path / "model" / "adapter")
        ).merge_and_unload(),
    ):
        other = Policy(module, own.family, own.processor, RunConfig(rollout=RolloutConfig(temperature=0.8)), 1)
        torch.testing.assert_close(other.logprobs(groups(own)), expected, atol=1e-5, rtol=0)


def test_an_adapter_goes_on_where_it_was(tmp_path):
    own = trained(policy(lora=LoraConfig(rank=2, alpha=6.0, targets=("q_proj", "v_proj"))))
    own.save(tmp_path / "model")
    again = policy(lora=LoraConfig(start=str(tmp_path / "model" / "adapter")))
    assert torch.equal(again.logprobs(groups(own)), own.logprobs(groups(own)))
    names = {name for name, parameter in again.module.named_parameters() if parameter.requires_grad}
    assert names == {name for name, parameter in own.module.named_parameters() if parameter.requires_grad}
    assert {name.split(".lora_")[0].rpartition(".")[2] for name in names} == {"q_proj", "v_proj"}
    assert trained(again, 1).optimizer._updates == 1


def test_seeds_decide_the_first_factor():
    def drawn(seed):
        torch.manual_seed(99)  # what else is drawn in the process makes no difference
        return torch.cat([p.detach().flatten() for n, p in policy(seed=seed).module.named_parameters() if "lora_A" in n])

    assert torch.equal(drawn(1), drawn(1))
    assert not torch.equal(drawn(1), drawn(2))


def test_layers_and_folders_that_do_not_exist_or_fit(tmp_path):
    with pytest.raises(ConfigError, match=r"lora\.targets: the text part has no linear layers \['nowhere'\]"):
        policy(lora=LoraConfig(rank=2, targets=("q_proj", "nowhere")))
    with pytest.raises(ModelError, match="holds no adapter"):
        policy(lora=LoraConfig(start=str(tmp_path)))
    trained(policy(), 1).save(tmp_path / "model")
    with pytest.raises(ModelError, match="is of another model"):
        policy("qwen3_5", lora=LoraConfig(start=str(tmp_path / "model" / "adapter")))
