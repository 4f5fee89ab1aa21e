"""Imports what its arguments name, one after the other, and prints what it found: one JSON line before each, and one after.

Run as a process of its own by :mod:`evr1_core.doctor.imports`: what cannot be imported may take the process with it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

from evr1_core import _torchvision

CODECS = {  # what decodes them; FFmpeg's own "av1" needs a device for it
    "H.264": {"h264"},
    "H.265": {"hevc"},
    "VP9": {"vp9", "libvpx-vp9"},
    "AV1": {"libdav1d", "libaom-av1"},
}


def av() -> dict[str, Any]:
    """FFmpeg's version, and those of the usual video codecs that it cannot decode."""
    import av

    missing = [name for name, decoders in CODECS.items() if not decoders & av.codecs_available]
    return {"ffmpeg": av.ffmpeg_version_info, "missing": missing}


def torch() -> dict[str, Any]:
    """What this build is made for, and the devices that it can use."""
    import torch

    devices = []
    for number in range(torch.cuda.device_count() if torch.cuda.is_available() else 0):
        free, total = torch.cuda.mem_get_info(number)
        devices.append({"name": torch.cuda.get_device_name(number), "free": free, "total": total})
    return {"built_for": torch.version.cuda or torch.version.hip, "devices": devices}


def torchvision() -> dict[str, Any]:
    """Whether the import hook had to help."""
    import torchvision

    return {"version": torchvision.__version__, "hook": _torchvision.active()}


def transformers() -> dict[str, Any]:
    """Processors are the part that other broken packages break."""
    import transformers.processing_utils
    from transformers import AutoProcessor

    return {"processor": AutoProcessor.__name__, "version": transformers.__version__}


def vllm() -> dict[str, Any]:
    """The platform that it takes this machine for; its compiled part is loaded to find that out."""
    from vllm.platforms import current_platform

    current_platform.import_kernels()
    return {"platform": current_platform.device_type}


STEPS: dict[str, Callable[[], dict[str, Any]]] = {step.__name__: step for step in (av, torch, torchvision, transformers, vllm)}

if __name__ == "__main__":
    for name in sys.argv[1:]:
        print(json.dumps({"step": name}), flush=True)
        print(json.dumps({"step": name, "found": STEPS[name]()}), flush=True)
