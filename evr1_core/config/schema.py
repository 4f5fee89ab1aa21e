"""The settings of a run: attrs classes whose fields carry their checks and their help. ``docs/config.md`` is made from them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from attrs import field, frozen, validators

POSITIVE = validators.gt(0)
NOT_NEGATIVE = validators.ge(0)
SHARE = validators.and_(validators.ge(0.0), validators.le(1.0))


def setting(default: Any, help_text: str, check: Any = None) -> Any:
    """A field with its help text and check; a check of a setting whose default is None lets None pass. ``default`` may be a
    callable that makes the value."""
    metadata = {"help": help_text}
    if callable(default):
        return field(factory=default, metadata=metadata)
    return field(default=default, validator=validators.optional(check) if default is None and check else check, metadata=metadata)


@frozen(kw_only=True)
class PluginChoice:
    """A plugin by name and the values of its options."""

    name: str = setting("", "name, distribution/name, or path/to/file.py:Class")
    options: Mapping[str, Any] = setting(dict, "the plugin's own options; `evr1 plugins GROUP/NAME` lists them")


@frozen(kw_only=True)
class RewardChoice:
    """One reward plugin of a run."""

    weight: float = setting(1.0, "scales the total of the records that this reward serves", NOT_NEGATIVE)
    options: Mapping[str, Any] = setting(dict, "the plugin's own options; `evr1 plugins rewards/NAME` lists them")


@frozen(kw_only=True)
class ModelConfig:
    path: str = setting("", "folder of a Hugging Face checkpoint: weights, processor, tokenizer, chat template")
    family: PluginChoice = setting(PluginChoice, "model family; empty: by `model_type` of the checkpoint")
    dtype: Literal["float32", "bfloat16"] = setting(
        "float32", "type that the model computes in; under training, weights are kept, and gradients added up, in float32"
    )


@frozen(kw_only=True)
class KeysConfig:
    """Names of the keys in data files."""

    uid: str = setting("", "key of the record's id; empty: file stem and row (published ids repeat)")
    problem: str = setting("problem", "question text")
    answer: str = setting("answer", "gold answer")
    options: str = setting("options", "list of choices")
    task: str = setting("problem_type", "problem type")
    kind: str = setting("data_type", "text, image or video")
    videos: str = setting("videos", "video paths")
    images: str = setting("images", "image paths")
    source: str = setting("data_source", "name of the data set")
    has_offline: str = setting("has_offline_trajectory", "whether the stored trajectory may be used")
    offline: str = setting("offline_output", "stored trajectory")
    offline_logprobs: str = setting("offline_logprobs", "log-probabilities of its tokens, end token included, as they were sampled")


@frozen(kw_only=True)
class DataConfig:
    train: tuple[str, ...] = setting((), "training files: .json, .jsonl or .parquet")
    val: tuple[str, ...] = setting((), "validation files")
    media_root: str = setting("", "folder that media paths are relative to; empty: the folder of the data file")
    keys: KeysConfig = setting(KeysConfig, "names of the keys in the files")
    templates: str = setting("", "folder of *.jinja files that replace built-in prompt templates of the same name")
    prompt_style: Literal["think", "direct"] = setting(
        "think", "think: reasoning in <think> before the <answer>; direct: the <answer> alone"
    )
    shuffle: bool = setting(True, "draw the training records in a new order each epoch")
    allow_bad_gold: bool = setting(False, "train although some gold answers do not score 1 (preflight lists them)")
    on_bad_media: Literal["fail", "skip"] = setting(
        "fail", "a file that cannot be used is an error, or its records are left out, up to max_bad_media"
    )
    max_bad_media: float = setting(0.01, "on_bad_media: skip: share of the records that may be left out; more are an error", SHARE)
    preflight_samples: int = setting(1000, "records of each problem type that preflight checks; 0: all", NOT_NEGATIVE)


@frozen(kw_only=True)
class FramesConfig:
    """How many frames are taken from a video, and how large frames and images become. Pixels are height x width of one frame."""

    video_fps: float = setting(2.0, "frames sampled a second", POSITIVE)
    video_frames: int | None = setting(None, "fixed number of frames, in place of video_fps", POSITIVE)
    video_min_frames: int = setting(4, "at least this many frames, as far as the video has them", POSITIVE)
    video_max_frames: int = setting(256, "at most this many frames", POSITIVE)
    video_min_pixels: int | None = setting(None, "pixels of a frame at least; None: 128 tokens", POSITIVE)
    video_max_pixels: int = setting(262144, "pixels of a frame at most", POSITIVE)
    video_total_pixels: int = setting(33554432, "pixels of all frames of a video together", POSITIVE)
    video_min_readable: float = setting(0.25, "a damaged video with a smaller share of its frames left is an error", SHARE)
    image_min_pixels: int | None = setting(None, "pixels of an image at least; None: 4 tokens", POSITIVE)
    image_max_pixels: int = setting(1048576, "pixels of an image at most", POSITIVE)


@frozen(kw_only=True)
class CacheConfig:
    folder: str = setting("", "frame cache; empty: `cache` beside the run folder")
    mode: Literal["prefer", "only", "off"] = setting(
        "prefer", "prefer: decode and store what is missing; only: a missing entry is an error; off: decode each time"
    )
    identity: Literal["stat", "content"] = setting(
        "stat", "what names a file: path, size and mtime; or a hash of its content (for caches shared by machines)"
    )
    time_limit: float = setting(600.0, "seconds that decoding one file may take", POSITIVE)
    memory_limit: int = setting(4096, "megabytes of memory that decoding one file may take", POSITIVE)


@frozen(kw_only=True)
class RolloutConfig:
    engine: PluginChoice = setting(lambda: PluginChoice(name="hf"), "rollout engine")
    n: int = setting(8, "responses for each prompt", POSITIVE)
    temperature: float = setting(1.0, "sampling temperature in training", POSITIVE)
    top_p: float = setting(1.0, "nucleus sampling; 1 is off", validators.and_(validators.gt(0.0), validators.le(1.0)))
    top_k: int = setting(-1, "top-k sampling; -1 is off", validators.ge(-1))
    max_prompt_tokens: int = setting(16384, "tokens of a prompt at most, visual ones included", POSITIVE)
    on_long_prompt: Literal["fail", "skip"] = setting(
        "fail", "a longer prompt is an error, found before the run starts, or its record is left out and counted"
    )
    max_response_tokens: int = setting(1024, "responses are cut off here", POSITIVE)


@frozen(kw_only=True)
class KLConfig:
    """A penalty on leaving a reference model."""

    place: Literal["off", "loss", "reward"] = setting(
        "off", "off: no reference model is loaded; loss: a term of the loss; reward: taken off the reward of each token"
    )
    kind: Literal["auto", "k1", "abs", "k2", "k3", "k1+", "k3+", "kl", "mse", "low_var_kl", "full"] = setting(
        "auto",
        "estimator; auto: k3+ in the loss, k1 in the reward. As a loss, k2, k1+ and k3+ have the gradient of the reverse KL, k3 "
        "that of the forward KL, and k1 none on average. kl, mse and low_var_kl are other names of k1, k2 and k3",
    )
    coef: float = setting(1e-3, "factor of the penalty", NOT_NEGATIVE)
    controller: Literal["fixed", "adaptive"] = setting("fixed", "adaptive: the factor follows the KL towards a target")
    target: float = setting(0.1, "adaptive: KL to hold, a mean over tokens", POSITIVE)
    horizon: int = setting(10_000, "adaptive: responses after which the factor may have changed by a fifth", POSITIVE)
    reference: str = setting("", "folder of the reference model; empty: the model as it is when the run starts")


@frozen(kw_only=True)
class CorrectionConfig:
    """What is done about a sampler whose probabilities differ from the trainer's."""

    mode: Literal["off", "truncate", "mask", "bypass"] = setting(
        "truncate",
        "truncate: the ratio weighs the policy loss, up to high; mask: tokens outside [low, high] count 0; bypass: the sampler's "
        "log-probabilities are the old ones; all of them only where the sampler gives log-probabilities",
    )
    level: Literal["token", "sequence", "geometric"] = setting(
        "token", "ratio of a token, of a response (product), or of a response per token (geometric mean)"
    )
    high: float = setting(2.0, "upper bound of the ratio trainer / sampler", POSITIVE)
    low: float | None = setting(None, "lower bound of the ratio; null: none", POSITIVE)


@frozen(kw_only=True)
class CriticConfig:
    """The value model of algorithms that need one."""

    path: str = setting("", "folder of the checkpoint that the critic starts from; empty: model.path")
    lr: float = setting(1e-5, "learning rate", POSITIVE)
    clip: float = setting(0.5, "a value may move this far from its old one in a step", POSITIVE)
    warmup_steps: int = setting(0, "first so many steps train the critic alone", NOT_NEGATIVE)


@frozen(kw_only=True)
class FilterConfig:
    """Which groups are trained on."""

    dynamic: bool = setting(False, "train only on groups whose accuracies differ, and sample on until there are enough")
    low: float | None = setting(None, "dynamic: only groups whose mean accuracy is above this", SHARE)
    high: float | None = setting(None, "dynamic: only groups whose mean accuracy is below this", SHARE)
    max_tries: int = setting(20, "dynamic: batches of prompts sampled for one step at most; 0 or less: no limit")


@frozen(kw_only=True)
class MixConfig:
    """Groups with a stored trajectory in the last slot."""

    enabled: bool = setting(False, "put the stored trajectory of a record, where there is one, in place of the last response")
    trigger_below: float | None = setting(None, "only when the mean accuracy of the sampled responses is below this", SHARE)
    min_offline_score: float | None = setting(None, "only when the trajectory's own reward is at least this", SHARE)


@frozen(kw_only=True)
class FormatConfig:
    require_reasoning: bool = setting(True, "the response must hold one closed reasoning block before the answer block")
    reasoning_tag: str = setting("think", "name of the reasoning tag")


@frozen(kw_only=True)
class RewardConfig:
    """How the parts of a reward become one number."""

    accuracy_weight: float = setting(0.9, "weight of the accuracy", NOT_NEGATIVE)
    format_weight: float = setting(0.1, "weight of the format", NOT_NEGATIVE)
    fallback: str = setting("", "reward plugin for problem types that no chosen reward serves; empty: an error")
    format: FormatConfig = setting(FormatConfig, "what counts as well-formed")
    overlong_buffer: float = setting(
        0.0,
        "responses longer than the limit less this many tokens are penalised; below 1: a share of the limit; 0: off",
        NOT_NEGATIVE,
    )
    overlong_factor: float = setting(1.0, "penalty at the limit", NOT_NEGATIVE)


@frozen(kw_only=True)
class AlarmConfig:
    """What stops a run that cannot learn."""

    patience: int = setting(20, "steps in a row before an alarm; 0: off", NOT_NEGATIVE)
    mismatch: float = setting(
        0.1, "mean distance of log-probs between sampler and trainer above which an alarm is due; 0: off", NOT_NEGATIVE
    )
    action: Literal["stop", "warn"] = setting("stop", "what an alarm does")


@frozen(kw_only=True)
class TrainConfig:
    steps: int | None = setting(None, "rollout steps; None: by epochs", POSITIVE)
    epochs: int = setting(1, "passes over the training records, when steps is not given", POSITIVE)
    prompts_per_step: int = setting(16, "prompts of one rollout step", POSITIVE)
    prompts_per_update: int | None = setting(None, "prompts of one optimiser update; None: all of the step", POSITIVE)
    ppo_epochs: int = setting(1, "passes over the responses of a step", POSITIVE)
    groups_per_batch: int = setting(4, "groups in one forward and backward pass", POSITIVE)
    tokens_per_batch: int | None = setting(
        None, "tokens of one forward and backward pass at most, prompts counted once; groups are put together to fill it", POSITIVE
    )
    lr: float = setting(1e-6, "learning rate", POSITIVE)
    schedule: Literal["constant", "linear", "cosine", "wsd"] = setting("constant", "learning-rate schedule")
    warmup_steps: int | None = setting(None, "warm-up, in updates; None: by warmup_ratio", NOT_NEGATIVE)
    warmup_ratio: float = setting(0.0, "warm-up, as a share of all updates", SHARE)
    min_lr_ratio: float = setting(0.0, "learning rate at the end, as a share of lr", SHARE)
    stable_ratio: float = setting(0.9, "wsd: share of the updates after warm-up at the full rate", SHARE)
    betas: tuple[float, float] = setting((0.9, 0.999), "AdamW's betas")
    weight_decay: float = setting(0.01, "AdamW's weight decay; norms and biases have none", NOT_NEGATIVE)
    entropy_coef: float = setting(0.0, "factor of the entropy bonus in the loss", NOT_NEGATIVE)
    mask_truncated: bool = setting(False, "responses cut off at the limit count for their group and are not trained on")
    max_grad_norm: float = setting(1.0, "global gradient norm is clipped to this", POSITIVE)
    freeze_vision: bool = setting(False, "do not train the vision tower")
    gradient_checkpointing: bool = setting(
        False, "keep only the input of each block for the backward pass, and compute the rest again: less memory, a third more time"
    )
    share_prefix: bool = setting(True, "compute a prompt once for its n responses, where the model family allows it")
    threads: int | None = setting(None, "CPU threads of torch; None: its own choice", POSITIVE)
    seed: int = setting(0, "seed of the order of records, of sampling and of everything else drawn", NOT_NEGATIVE)


@frozen(kw_only=True)
class LoraConfig:
    """Low-rank adapters in place of training all weights. They stand beside the linear layers of the text part."""

    rank: int = setting(0, "rank of the adapters; 0: none, all weights are trained", NOT_NEGATIVE)
    alpha: float = setting(16.0, "what adapters add is scaled by alpha / rank", POSITIVE)
    targets: tuple[str, ...] = setting((), "names of the layers, such as q_proj; empty: all linear layers of the text part")
    start: str = setting("", "folder of an adapter to go on with; its own rank, alpha and targets count")

    @property
    def enabled(self) -> bool:
        """Adapters are trained."""
        return bool(self.rank or self.start)


@frozen(kw_only=True)
class ShardingConfig:
    """A model in shards, one in each process that torchrun starts; without torchrun, this says nothing."""

    cpu_offload: bool = setting(False, "keep shards and the optimiser's state in main memory, and update there")
    timeout: float = setting(60.0, "minutes that processes wait for each other; then the run ends with an error", POSITIVE)


@frozen(kw_only=True)
class ValConfig:
    every: int = setting(0, "validate each so many steps, and at the end; 0: only at the end", NOT_NEGATIVE)
    before: bool = setting(True, "validate before the first step")
    n: int = setting(1, "responses to each record: one is greedy; several are sampled as in training, and give pass@k", POSITIVE)
    max_samples: int = setting(0, "first so many validation records; 0: all", NOT_NEGATIVE)


@frozen(kw_only=True)
class LogConfig:
    trackers: tuple[PluginChoice, ...] = setting(
        lambda: (PluginChoice(name="console"), PluginChoice(name="jsonl"), PluginChoice(name="tensorboard")), "where metrics go"
    )
    samples_every: int = setting(10, "write sampled responses with their rewards each so many steps; 0: never", NOT_NEGATIVE)
    samples: int = setting(4, "prompts in such a dump", POSITIVE)


@frozen(kw_only=True)
class PluginsConfig:
    strict: bool = setting(False, "a listener that cannot be loaded is an error")


@frozen(kw_only=True)
class RunConfig:
    """Everything that decides what a run does; stored, resolved, in its folder."""

    output: str = setting("", "run folder; empty: runs/<algorithm>-<date and time>")
    algorithm: PluginChoice = setting(lambda: PluginChoice(name=""), "algorithm (flag --algo)")
    rewards: Mapping[str, RewardChoice] = setting(dict, "reward plugins by name (flag --rewards)")
    model: ModelConfig = setting(ModelConfig, "what is trained")
    data: DataConfig = setting(DataConfig, "records")
    frames: FramesConfig = setting(FramesConfig, "sampling and size of frames")
    cache: CacheConfig = setting(CacheConfig, "decoded frames on disk")
    rollout: RolloutConfig = setting(RolloutConfig, "sampling of responses")
    kl: KLConfig = setting(KLConfig, "penalty on leaving a reference model")
    correction: CorrectionConfig = setting(CorrectionConfig, "probabilities of sampler and trainer that differ")
    critic: CriticConfig = setting(CriticConfig, "value model, for algorithms that need one")
    filter: FilterConfig = setting(FilterConfig, "groups to train on")
    mix: MixConfig = setting(MixConfig, "stored trajectories in sampled groups")
    reward: RewardConfig = setting(RewardConfig, "composition of the reward")
    alarms: AlarmConfig = setting(AlarmConfig, "what stops a run that cannot learn")
    train: TrainConfig = setting(TrainConfig, "optimisation")
    lora: LoraConfig = setting(LoraConfig, "low-rank adapters")
    sharding: ShardingConfig = setting(ShardingConfig, "several processes")
    val: ValConfig = setting(ValConfig, "validation")
    log: LogConfig = setting(LogConfig, "metrics and dumps")
    plugins: PluginsConfig = setting(PluginsConfig, "listeners")
