"""The names that plugins may import. Tensor helpers live in :mod:`evr1_core.api.tensors`, which imports torch."""

from evr1_core.api.algorithms import Advantages, Algorithm, LossBatch, LossResult, ScoreBatch
from evr1_core.api.benchmarks import Benchmark, BenchmarkPaths, EvalItem, PromptStyle, Row, ScoredRow, Scores, Skipped
from evr1_core.api.clips import BoxSpace, Clip, PatchGrid, VideoMetadata
from evr1_core.api.engines import Request, Rollout, RolloutEngine, Sampling
from evr1_core.api.errors import (
    BadGoldError,
    CacheError,
    ClashError,
    ConfigError,
    DataError,
    EngineError,
    Evr1Error,
    HookError,
    MediaError,
    ModelError,
    NotJudgedError,
    PluginError,
    PluginLoadError,
    ProblemsError,
    UnclearVerdictError,
    UnknownPluginError,
    WeightsLostError,
)
from evr1_core.api.hooks import hookimpl, hookspec
from evr1_core.api.models import Encoded, EngineInput, ModelBatch, ModelFamily, VisionFeatures
from evr1_core.api.processing import IMAGE, TEXT, VIDEO
from evr1_core.api.rewards import Reward, RewardInput, RewardResult
from evr1_core.api.samples import Kind, Media, Prompt, Sample
from evr1_core.api.trackers import Tracker

API_VERSION = 1

__all__ = [
    "API_VERSION",
    "IMAGE",
    "TEXT",
    "VIDEO",
    "Advantages",
    "Algorithm",
    "BadGoldError",
    "Benchmark",
    "BenchmarkPaths",
    "BoxSpace",
    "CacheError",
    "ClashError",
    "Clip",
    "ConfigError",
    "DataError",
    "Encoded",
    "EngineError",
    "EngineInput",
    "EvalItem",
    "Evr1Error",
    "HookError",
    "Kind",
    "LossBatch",
    "LossResult",
    "Media",
    "MediaError",
    "ModelBatch",
    "ModelError",
    "ModelFamily",
    "NotJudgedError",
    "PatchGrid",
    "PluginError",
    "PluginLoadError",
    "ProblemsError",
    "Prompt",
    "PromptStyle",
    "Request",
    "Reward",
    "RewardInput",
    "RewardResult",
    "Rollout",
    "RolloutEngine",
    "Row",
    "Sample",
    "Sampling",
    "ScoreBatch",
    "ScoredRow",
    "Scores",
    "Skipped",
    "Tracker",
    "UnclearVerdictError",
    "UnknownPluginError",
    "VideoMetadata",
    "VisionFeatures",
    "WeightsLostError",
    "hookimpl",
    "hookspec",
]
