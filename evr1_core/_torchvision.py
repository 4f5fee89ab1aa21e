"""An import hook that lets a torchvision built for CUDA work beside a CPU build of torch.

torchvision's compiled extension cannot be loaded there, and its import dies with ``operator torchvision::nms does not exist``: it
describes two operators to torch that only the extension declares. Declaring the two is enough; all image transforms are written in
plain torch. The hook acts in the moment torchvision is first imported and costs nothing before. Processes that vLLM starts install
it through the entry-point group ``vllm.general_plugins``.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any

SCHEMAS = tuple(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor" for name in ("nms", "qnms"))
_declared: list[Any] = []  # the torch library; its declarations last as long as the object


def install() -> None:
    """Puts the hook before the other finders. Does nothing when it is there, or when torchvision was imported already."""
    if "torchvision" not in sys.modules and not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())


def active() -> bool:
    """The installed torchvision needed the hook, in this process."""
    return bool(_declared)


class _Finder:
    def find_spec(self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        if name != "torchvision":
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None and spec.submodule_search_locations:
            spec.loader = _Loader(spec.loader, Path(spec.submodule_search_locations[0]))  # type: ignore[assignment]
        return spec


class _Loader:
    """The real loader, with a step before the module's code runs. Not earlier: many only look whether there is a torchvision."""

    def __init__(self, loader: Any, folder: Path) -> None:
        self._loader, self._folder = loader, folder

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        module: ModuleType | None = self._loader.create_module(spec)
        return module

    def exec_module(self, module: ModuleType) -> None:
        module.__loader__ = self._loader
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        _prepare(self._folder)
        self._loader.exec_module(module)


def _prepare(folder: Path) -> None:
    """Declares the two operators unless the compiled extension in ``folder`` loads."""
    import torch

    for library in folder.glob("_C*.so"):
        try:
            torch.ops.load_library(library)
        except OSError:  # linked against libraries that this torch does not bring
            continue
        return
    if not _declared:
        declarations = torch.library.Library("torchvision", "DEF")
        for schema in SCHEMAS:
            declarations.define(schema)
        _declared.append(declarations)
