"""What vLLM is told about a checkpoint and the engine's options."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from evr1_core.api import ConfigError

WORKER = "evr1_plugins.engines._vllm_worker.WeightSync"


def arguments(options: Any, model_path: str) -> dict[str, Any]:
    """Of vLLM's AsyncEngineArgs. Raises ConfigError for further ones that have an option of their own or are fixed."""
    fixed = {
        "model": model_path,
        "dtype": _stored_type(model_path) if options.dtype == "auto" else options.dtype,
        "tensor_parallel_size": options.tensor_parallel_size,
        "gpu_memory_utilization": options.gpu_memory_utilization,
        "kv_cache_memory_bytes": None if options.cache_gb is None else int(options.cache_gb * (1 << 30)),
        "max_model_len": options.max_model_len,
        "max_num_seqs": options.max_num_seqs,
        "limit_mm_per_prompt": {"image": options.max_images, "video": options.max_videos},
        "enforce_eager": options.enforce_eager,
        "enable_sleep_mode": options.sleep_level > 0,
        "enable_prefix_caching": True,
        "logprobs_mode": "processed_logprobs",
        "generation_config": "vllm",  # how to sample is said with every request
        "worker_extension_cls": WORKER,
    }
    twice = sorted(fixed.keys() & options.engine_args.keys())
    if twice:
        raise ConfigError([f"rollout.engine.options.engine_args: {name} is set by the engine" for name in twice])
    return fixed | dict(options.engine_args)


def generation_config(model_path: str) -> Any:
    """As Transformers gives it to the model of this folder."""
    from transformers import AutoConfig, GenerationConfig

    if (Path(model_path) / "generation_config.json").is_file():
        return GenerationConfig.from_pretrained(model_path, local_files_only=True)
    return GenerationConfig.from_model_config(AutoConfig.from_pretrained(model_path, local_files_only=True))


def _stored_type(model_path: str) -> str:
    """The type of a checkpoint's weights; vLLM's own choice would be bfloat16 for one in float32."""
    from transformers import AutoConfig

    config = AutoConfig.from_pretrained(model_path, local_files_only=True)
    return str(config.dtype or config.get_text_config().dtype or "float32").removeprefix("torch.")
