"""The settings of an evaluation, and the protocols that set many of them at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from attrs import frozen, validators

from evr1_core.api import Benchmark, ConfigError, PatchGrid, PromptStyle, Sampling
from evr1_core.api.judge import JudgeClient
from evr1_core.config.build import build_partly
from evr1_core.config.convert import Path as KeyPath
from evr1_core.config.schema import NOT_NEGATIVE, POSITIVE, CacheConfig, FramesConfig, ModelConfig, PluginChoice, setting
from evr1_core.config.sources import gathered, merged
from evr1_core.registry.catalog import hint


@frozen(kw_only=True)
class PromptConfig:
    form: Literal["direct", "reason", "tags"] = setting(
        "direct", "direct: the answer alone; reason: short reasoning and a final line; tags: <think> and <answer>"
    )
    subtitles: Literal["none", "text"] = setting("none", "text: transcripts, as far as their lines are on show in a sampled frame")


@frozen(kw_only=True)
class DecodingConfig:
    temperature: float = setting(0.0, "0: greedy, the most probable token each time", NOT_NEGATIVE)
    top_p: float = setting(1.0, "nucleus sampling; 1 is off", validators.and_(validators.gt(0.0), validators.le(1.0)))
    top_k: int = setting(-1, "top-k sampling; -1 is off", validators.ge(-1))
    max_tokens: int = setting(4096, "tokens of a response at most", POSITIVE)
    seed: int = setting(0, "seed of sampled responses", NOT_NEGATIVE)


@frozen(kw_only=True)
class EvalConfig:
    """Everything that decides how benchmarks are run; what a protocol file may set."""

    protocol: str = setting("", "preset that the other settings start from")
    output: str = setting("", "folder of the results; a run that was stopped goes on there")
    data: str = setting("", "folder with one folder for each benchmark")
    source: Literal["auto", "official", "normalised"] = setting("auto", "which annotations to read; auto: official ones first")
    benchmarks: Mapping[str, Mapping[str, Any]] = setting(dict, "benchmarks by name, with their options")
    model: ModelConfig = setting(ModelConfig, "what is evaluated")
    frames: FramesConfig = setting(FramesConfig, "sampling and size of frames")
    prompt: PromptConfig = setting(PromptConfig, "how questions are asked")
    decoding: DecodingConfig = setting(DecodingConfig, "how responses are drawn")
    max_prompt_tokens: int = setting(262144, "tokens of a prompt at most, visual ones included", POSITIVE)
    engine: PluginChoice = setting(lambda: PluginChoice(name="hf"), "what the model runs in")
    cache: CacheConfig = setting(CacheConfig, "decoded frames on disk; empty folder: `cache` in the results' folder")
    judge: JudgeClient = setting(JudgeClient, "who decides where rules cannot; no base_url: nobody")
    workers: int = setting(4, "videos loaded at a time", POSITIVE)
    frames_gb: float = setting(
        0.0,
        "memory that the frames of questions in the engine may take, 4 bytes a value; 0: a quarter of what there is",
        NOT_NEGATIVE,
    )
    limit: int = setting(0, "first so many questions of each benchmark; 0: all", NOT_NEGATIVE)

    @property
    def style(self) -> PromptStyle:
        """The prompts' style."""
        return PromptStyle(form=self.prompt.form, subtitles=self.prompt.subtitles)

    def sampling(self, seed: int) -> Sampling:
        """The sampling of one question; ``seed`` is its own."""
        greedy = self.decoding.temperature == 0
        return Sampling(
            temperature=self.decoding.temperature,
            top_p=self.decoding.top_p,
            top_k=self.decoding.top_k,
            max_tokens=self.decoding.max_tokens,
            seed=None if greedy else seed,
        )


# Qwen3-VL report: 2 fps, up to 2048 frames, 640 tokens a frame, 224K in all. Qwen2.5-VL report: 2 fps, up to 768 frames, 24,576
# tokens. ref: the script of EasyVideoR1 (arXiv:2604.16893) for Qwen3-VL. All decode greedily; published scores often sample.
PROTOCOLS: Mapping[str, Mapping[str, Any]] = {
    "qwen3_vl": {
        "frames": {"video_fps": 2.0, "video_max_frames": 2048, "video_max_pixels": 655_360, "video_total_pixels": 224 * 1024**2},
        "prompt": {"form": "direct"},
        "decoding": {"max_tokens": 32_768},
    },
    "qwen2_5_vl": {
        "frames": {"video_fps": 2.0, "video_max_frames": 768, "video_max_pixels": 602_112, "video_total_pixels": 24_576 * 28 * 28},
        "prompt": {"form": "direct"},
        "decoding": {"max_tokens": 2048},
    },
    "ref": {
        "frames": {"video_fps": 2.0, "video_max_frames": 256, "video_max_pixels": 262_144, "video_total_pixels": 33_554_432},
        "prompt": {"form": "reason"},
        "decoding": {"max_tokens": 4096},
        "max_prompt_tokens": 256_000,
    },
}
# What benchmarks may say of themselves, in Benchmark.protocols: the setting of frames that each word stands for.
OWN_FRAMES = {"fps": "video_fps", "frames": "video_frames", "max_frames": "video_max_frames", "min_frames": "video_min_frames"}
OWN_TOKENS = {"frame_tokens": "video_max_pixels", "total_tokens": "video_total_pixels"}  # tokens, in pixels


@frozen(kw_only=True)
class Settings:
    """What was asked for: ``values`` by file, ``--set`` and flags, over the preset ``protocol``; ``origins`` of each value."""

    protocol: str
    values: Mapping[str, Any]
    origins: Mapping[KeyPath, str]
    problems: Sequence[str] = ()

    def config(self, benchmark: Benchmark | None = None, grid: PatchGrid | None = None) -> EvalConfig:
        """The settings, or those of one benchmark, which may say itself where it departs from the preset; what was asked for wins.

        Raises ConfigError with all problems.
        """
        under = merged({"engine": {"name": "hf"}}, PROTOCOLS[self.protocol])  # an engine with options keeps the default name
        own = benchmark.protocols.get(self.protocol, {}) if benchmark else {}
        if own and benchmark and grid:
            under = merged(under, {"frames": _own_frames(benchmark, own, grid)})
        config, problems = build_partly(EvalConfig, merged(under, {**self.values, "protocol": self.protocol}), origins=self.origins)
        texts = [*self.problems, *(problem.text for problem in problems)]
        if texts:
            raise ConfigError(texts)
        assert isinstance(config, EvalConfig)
        return config


def _own_frames(benchmark: Benchmark, own: Mapping[str, Any], grid: PatchGrid) -> dict[str, Any]:
    unknown = own.keys() - OWN_FRAMES.keys() - OWN_TOKENS.keys()
    if unknown:
        raise ConfigError(
            [f"{benchmark.id}: unknown {min(unknown)!r} in protocols; known: {', '.join([*OWN_FRAMES, *OWN_TOKENS])}"]
        )
    plain = {OWN_FRAMES[name]: value for name, value in own.items() if name in OWN_FRAMES}
    return plain | {OWN_TOKENS[name]: value * grid.factor**2 for name, value in own.items() if name in OWN_TOKENS}


def load_settings(protocol: str | None, sets: Sequence[str], flags: Mapping[str, Any], default: str) -> Settings:
    """Settings from ``--protocol`` (a preset, or a YAML file that may name one as ``protocol``), ``--set`` and flags.

    ``default``: the preset where none is named. Raises ConfigError for an unknown preset and a file that cannot be read.
    """
    file = Path(protocol) if protocol and protocol.endswith((".yaml", ".yml")) else None
    source = gathered(EvalConfig, file, sets, {key: value for key, value in flags.items() if key != "benchmarks"})
    names = flags.get("benchmarks")
    if names is not None:
        described = source.values.get("benchmarks")
        described = described if isinstance(described, dict) else {}
        source.put(("benchmarks",), {name: described.get(name) or {} for name in names}, "--benchmarks")
    preset = str(source.values.get("protocol") or "") if protocol is None or file else protocol
    preset = preset or default
    if preset not in PROTOCOLS:
        known = hint(preset, PROTOCOLS).replace("installed", "known")
        raise ConfigError([f"--protocol: no preset {preset!r}{known}; a file must end in .yaml"])
    problems = [problem.text for problem in source.problems]
    return Settings(protocol=preset, values=source.values, origins=source.origins, problems=problems)
