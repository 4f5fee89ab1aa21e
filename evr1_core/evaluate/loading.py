"""The first stage: frames from the cache and the chat text, for one question after the other."""

from __future__ import annotations

import threading
from typing import Any

from attrs import field, frozen

from evr1_core.api import Clip, EvalItem, Media, MediaError, ModelError, ModelFamily, Prompt, Request
from evr1_core.api.subtitles import Line, read_lines, shown_with
from evr1_core.cache.frames import FrameCache
from evr1_core.evaluate.answers import Failure, seen
from evr1_core.evaluate.work import Work, placed
from evr1_core.rollout.boxes import prediction_space
from evr1_core.rollout.collect import seed_of


@frozen(kw_only=True, eq=False)
class Ready:
    """A question that can be sent to the engine."""

    work: Work
    item: EvalItem
    request: Request
    boxes: Any
    prompt_tokens: int


class NotReadyError(Exception):
    """A question that cannot be asked: ``kind`` and the reason; it becomes a row."""

    def __init__(self, kind: Failure, reason: str) -> None:
        super().__init__(reason)
        self.kind: Failure = kind


@frozen(kw_only=True, eq=False)
class Loader:
    """Loads questions with the family and processor of a model; to be called from several threads."""

    family: ModelFamily
    processor: Any
    _lock: Any = field(factory=threading.Lock, init=False)  # processors are not made for several threads

    def video(self, work: Work, cache: FrameCache, item: EvalItem) -> Clip:
        """The frames of an item's video. Raises NotReadyError; CacheError when there is no room for them."""
        return _clip(cache, Media(kind="video", path=placed(work, item).video, span=item.clip))

    def ready(self, work: Work, cache: FrameCache, item: EvalItem, video: Clip) -> Ready:
        """The request of an item whose video is loaded. Raises NotReadyError."""
        item = seen(placed(work, item), video)
        prompt = work.benchmark.prompt(item, work.config.style, transcript(work, item, video))
        own = Media(kind="video", path=item.video, span=item.clip)
        clips = tuple(video if media == own else _clip(cache, media) for media in prompt.media)
        text, length = self._rendered(prompt, clips)
        if length > work.config.max_prompt_tokens:
            limit = f"max_prompt_tokens = {work.config.max_prompt_tokens}"
            raise NotReadyError(
                "prompt", f"the prompt has {length} tokens, more than {limit}; lower the frames or pixels in `frames`"
            )
        request = Request(
            uid=item.uid, text=text, clips=clips, sampling=work.config.sampling(seed_of(work.config.decoding.seed, item.uid))
        )
        boxes = prediction_space(self.family.box_kind, clips)
        return Ready(work=work, item=item, request=request, boxes=boxes, prompt_tokens=length)

    def _rendered(self, prompt: Prompt, clips: tuple[Clip, ...]) -> tuple[str, int]:
        try:
            with self._lock:
                text = self.family.render(self.processor, prompt, clips)
                return text, self.family.prompt_length(self.processor, text, clips)
        except ModelError as error:
            raise NotReadyError("prompt", str(error)) from error


def transcript(work: Work, item: EvalItem, video: Clip) -> list[Line]:
    """The subtitle lines on show in the frames of ``video``; none where they are not wanted or there are none."""
    if work.config.prompt.subtitles == "none" or item.subtitle is None or video.meta is None:
        return []
    path = work.paths.folder / item.subtitle
    if not path.is_file():
        return []
    return shown_with(read_lines(path, item.subtitle_offset), video.meta.times, item.clip)


def _clip(cache: FrameCache, media: Media) -> Clip:
    try:
        return cache.clip(media)
    except MediaError as error:
        raise NotReadyError("media", f"{error.kind}: {error}") from error
