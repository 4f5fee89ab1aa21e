"""What is installed, read from package metadata alone: nothing of a plugin is imported here."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from importlib.metadata import Distribution, distributions

from attrs import frozen

from evr1_core import __version__
from evr1_core.api.errors import ClashError, PluginError, UnknownPluginError

GROUPS = ("rewards", "benchmarks", "models", "algorithms", "engines", "trackers", "hooks")
SINGULAR = {group: group[:-1] for group in GROUPS} | {"models": "model family", "hooks": "listener"}
DISABLE = "EVR1_DISABLE"  # distributions, separated by commas, whose plugins are left out


@frozen(kw_only=True)
class PluginRef:
    """One entry point. ``group`` is the bare word (``rewards``), ``target`` is ``module:Class``.

    ``problem`` says why the plugin cannot be used: its distribution asks for another evr1, or is disabled. None: nothing is known
    against it. A plugin taken from a file has an empty ``dist`` and ``version``.
    """

    group: str
    name: str
    target: str
    dist: str
    version: str
    problem: str | None = None

    @property
    def kind(self) -> str:
        """What one plugin of the group is called."""
        return SINGULAR[self.group]

    @property
    def origin(self) -> str:
        """Distribution and version, for messages."""
        return f"{self.dist} {self.version}" if self.dist else "a file"

    def __str__(self) -> str:
        return f"{self.kind} {self.name!r} ({self.origin})"


@frozen
class Catalog:
    """The plugins of all installed distributions, sorted by group, name and distribution."""

    refs: tuple[PluginRef, ...]

    @classmethod
    def scan(cls) -> Catalog:
        """Reads the metadata on ``sys.path``. Raises PluginError for a distribution whose entry points cannot be read."""
        order = {group: place for place, group in enumerate(GROUPS)}
        refs = [ref for dist in _distributions() for ref in _refs(dist)]
        return cls(tuple(sorted(refs, key=lambda ref: (order[ref.group], ref.name, ref.dist))))

    def group(self, group: str) -> tuple[PluginRef, ...]:
        """The plugins of a group, unusable ones among them. Raises UnknownPluginError for a group that does not exist."""
        if group not in GROUPS:
            raise UnknownPluginError(f"no plugin group {group!r}{hint(group, GROUPS)}")
        return tuple(ref for ref in self.refs if ref.group == group)

    def find(self, group: str, name: str) -> PluginRef:
        """The plugin called ``name``, or ``distribution/name`` to say whose.

        Raises UnknownPluginError with the nearest name, ClashError when two distributions offer a bare name. A plugin with a
        ``problem`` is found; loading it is the error.
        """
        dist, _, bare = name.rpartition("/")
        refs = self.group(group)
        found = [ref for ref in refs if ref.name == bare and (not dist or normalised(ref.dist) == normalised(dist))]
        enabled = [ref for ref in found if not is_disabled(ref.dist)] or found[:1]
        if not enabled:
            known = sorted({f"{ref.dist}/{ref.name}" if dist else ref.name for ref in refs})
            raise UnknownPluginError(f"no {SINGULAR[group]} {name!r}{hint(name, known)}")
        if len(enabled) > 1:
            owners = " and ".join(ref.origin for ref in enabled)
            choices = " or ".join(f"{ref.dist}/{ref.name}" for ref in enabled)
            raise ClashError(f"{SINGULAR[group]} {name!r} is offered by {owners}; say which: {choices}")
        return enabled[0]

    def clashes(self, ref: PluginRef) -> bool:
        """Another distribution offers the same name, so that the bare name cannot be used. Listeners have no names to share."""
        return (
            ref.group != "hooks"
            and not is_disabled(ref.dist)
            and any(
                (other.group, other.name) == (ref.group, ref.name) and other is not ref and not is_disabled(other.dist)
                for other in self.refs
            )
        )

    def problem(self, ref: PluginRef) -> str | None:
        """The reference's problem and a clash, as listed; None when there is neither."""
        found = ["clash"] if self.clashes(ref) else []
        return "; ".join(found + ([ref.problem] if ref.problem else [])) or None


def normalised(dist: str) -> str:
    """A distribution's name as names are compared: lower case, runs of ``-``, ``_`` and ``.`` as one ``-``."""
    return re.sub(r"[-_.]+", "-", dist).lower()


def disabled() -> frozenset[str]:
    """The distributions, normalised, that ``EVR1_DISABLE`` names."""
    return frozenset(normalised(dist.strip()) for dist in os.environ.get(DISABLE, "").split(",") if dist.strip())


def is_disabled(dist: str) -> bool:
    """``EVR1_DISABLE`` names the distribution."""
    return normalised(dist) in disabled()


def hint(name: str, known: Iterable[str]) -> str:
    """``; did you mean ...? (installed: ...)`` for a name that is not among the known ones."""
    from difflib import get_close_matches

    names = list(known)
    near = get_close_matches(name, names, n=1)
    listed = f" (installed: {', '.join(names)})" if names else " (none is installed)"
    return (f"; did you mean {near[0]!r}?" if near else "") + listed


def _distributions() -> Iterator[Distribution]:
    """Distributions with evr1 entry points; of two copies of one distribution the first on the path counts, as for imports."""
    seen = set()
    for dist in distributions():
        if "[evr1." not in (dist.read_text("entry_points.txt") or ""):
            continue
        name = normalised(dist.name or "")  # the rest of a broken uninstallation has no name
        if name and name not in seen:
            seen.add(name)
            yield dist


def _refs(dist: Distribution) -> Iterator[PluginRef]:
    try:
        entries = list(dist.entry_points)
    except (TypeError, ValueError) as error:  # what importlib.metadata raises for a line that is no `name = target`
        raise PluginError(
            f"{dist.name} {dist.version}: its entry points cannot be read: {error}; reinstall or remove it"
        ) from error
    problem = f"disabled by {DISABLE}" if is_disabled(dist.name) else _unmet(dist)
    for entry in entries:
        group = entry.group.removeprefix("evr1.")
        if entry.group.startswith("evr1.") and group in GROUPS:
            yield PluginRef(group=group, name=entry.name, target=entry.value, dist=dist.name, version=dist.version, problem=problem)


def _unmet(dist: Distribution) -> str | None:
    """The distribution's requirement on evr1 that this version does not meet; None when all are met."""
    lines = [line for line in dist.requires or () if re.match(r"evr1(?![\w.-])", line, re.IGNORECASE)]
    if not lines:
        return None
    from packaging.requirements import InvalidRequirement, Requirement

    for line in lines:
        try:
            wanted = Requirement(line)
        except InvalidRequirement:
            return f"its requirement {line!r} cannot be read"
        applies = wanted.marker is None or wanted.marker.evaluate({"extra": ""})
        if applies and not wanted.specifier.contains(__version__, prereleases=True):
            return f"needs evr1{wanted.specifier}, this is {__version__}"
    return None
