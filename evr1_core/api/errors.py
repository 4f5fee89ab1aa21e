"""Errors that a user meets: each says what is wrong, where, and what to do about it.

The command line prints an :class:`Evr1Error` without a traceback and exits with status 2. Anything else is a defect of evr1 or of a
plugin and keeps its traceback.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


class Evr1Error(Exception):
    """Bad input, bad configuration or a broken plugin: the message is meant for the person who started the run."""

    def __reduce__(self) -> tuple[Any, ...]:  # errors cross process borders, whatever their constructors take
        return _restored, (type(self), self.args, self.__dict__)


def _restored(cls: type[Evr1Error], args: tuple[Any, ...], state: Mapping[str, Any]) -> Evr1Error:
    error = cls.__new__(cls, *args)
    error.__dict__.update(state)
    return error


class ProblemsError(Evr1Error):
    """Several problems found in one pass, each already carrying its place; printed one a line."""

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(self.problems))


class ConfigError(ProblemsError):
    """The configuration cannot be used; ``problems`` name file and line, flag or key."""


class DataError(ProblemsError):
    """Records cannot be used; ``problems`` name file, line and reason."""


SHOWN = 200  # characters of a gold answer in a message


class BadGoldError(Evr1Error):
    """The gold answer of a record does not parse. A data error: never a reward of 0."""

    def __init__(self, sample: object, expected: str) -> None:
        uid = getattr(sample, "uid", sample)
        origin = getattr(sample, "origin", "")
        task = getattr(sample, "task", "")
        answer = repr(getattr(sample, "answer", None))
        place, kind = f"{origin}: " if origin else "", f" ({task})" if task else ""
        shown = answer if len(answer) <= SHOWN else f"{answer[:SHOWN]}..."
        super().__init__(f"{place}record {uid!r}{kind}: the gold answer {shown} is not {expected}")


class MediaError(Evr1Error):
    """A media file cannot be used.

    ``kind`` is a short stable word for counting, e.g. ``missing``, ``empty``, ``no_video_stream``, ``undecodable``, ``truncated``,
    ``too_thin``, ``timeout``, ``crash``.
    """

    def __init__(self, path: str, kind: str, reason: str) -> None:
        self.path, self.kind, self.reason = path, kind, reason
        super().__init__(f"{path}: {reason}")


class CacheError(Evr1Error):
    """The frame cache cannot be used: its disk is full, an entry is missing or damaged. Never the fault of the media."""


class ModelError(Evr1Error):
    """A model folder, processor or forward input does not fit."""


class EngineError(Evr1Error):
    """A rollout engine cannot be started, has died, or has other weights than the policy."""


class WeightsLostError(EngineError):
    """The engine has died and was started anew, with the checkpoint's weights: it needs the policy's before it is asked again."""


class PluginError(Evr1Error):
    """A plugin cannot be found, loaded or built."""


class UnknownPluginError(PluginError):
    """No installed distribution offers the name that was asked for."""


class ClashError(PluginError):
    """Two installed distributions offer the name that was asked for, or claim the same problem type."""


class PluginLoadError(PluginError):
    """A plugin was found and could not be imported, or is not what its group asks for.

    ``group``, ``name``, ``dist`` and ``version`` say which; ``cause`` is the reason alone.
    """

    def __init__(
        self, message: str, *, group: str = "", name: str = "", dist: str = "", version: str = "", cause: str = ""
    ) -> None:
        super().__init__(message)
        self.group, self.name, self.dist, self.version, self.cause = group, name, dist, version, cause


class HookError(PluginError):
    """A listener raised an exception, or answered with something that its event does not allow."""


class NotJudgedError(Evr1Error):
    """A judge gave no usable verdict after its retries: the response is not judged, which is not the same as wrong."""


class UnclearVerdictError(NotJudgedError):
    """A judge replied, twice, and neither reply held a verdict."""
