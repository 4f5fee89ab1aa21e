"""Every tiny checkpoint starts in vLLM and makes the same prompt of the family's engine input as training does."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec

import pytest

from tests.plugins.models.made_up import FAMILIES, made_up
from tests.tiny import tiny_folder

CASES = ("text", "image", "odd video", "videos", "mixed")
ENVIRONMENT = {
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "HF_HUB_OFFLINE": "1",
    "OMP_NUM_THREADS": "1",
}


def answered(name, folder):
    """Runs in a process of its own: the token ids that vLLM makes of each prompt, and how many it answers with."""
    from vllm import LLM, SamplingParams

    engine = LLM(
        model=str(folder),
        dtype="bfloat16" if name == "qwen3_5" else "float32",  # on a CPU, its recurrent layers know no other
        max_model_len=2048,
        enforce_eager=True,
        limit_mm_per_prompt={"image": 4, "video": 4},
    )
    prompts = []
    for case in CASES:
        made = made_up(name, case)
        given = made.family.engine_input(made.text, made.clips)
        prompt = {"prompt": given.text, "mm_processor_kwargs": dict(given.processor_kwargs)}
        prompts.append(prompt | ({"multi_modal_data": dict(given.media)} if given.media else {}))
    results = engine.generate(prompts, SamplingParams(max_tokens=4, ignore_eos=True, temperature=1.0, seed=0))
    return {
        case: {"prompt": list(result.prompt_token_ids), "answer": len(result.outputs[0].token_ids)}
        for case, result in zip(CASES, results, strict=True)
    }


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.skipif(find_spec("vllm") is None, reason="vLLM is not installed")
@pytest.mark.parametrize("name", FAMILIES)
def test_it_starts_in_vllm_and_agrees_about_prompts(name, tmp_path):
    words = [sys.executable, __file__, name, str(tiny_folder(name)), str(tmp_path / "out.json")]
    # A child of vLLM that inspects models imports torchvision before it loads plugins: the hook must be there at the start.
    (tmp_path / "sitecustomize.py").write_text("import evr1_core\n")
    environment = {**os.environ, **ENVIRONMENT, "PYTHONPATH": os.pathsep.join([str(tmp_path), *filter(None, sys.path)])}
    result = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=580)
    assert result.returncode == 0, result.stdout[-2000:] + result.stderr[-6000:]
    found = json.loads((tmp_path / "out.json").read_text())
    for case in CASES:
        assert found[case]["prompt"] == made_up(name, case).encoded.input_ids.tolist(), case
        assert found[case]["answer"] == 4


if __name__ == "__main__":
    with open(sys.argv[3], "w", encoding="utf-8") as file:
        json.dump(answered(*sys.argv[1:3]), file)
