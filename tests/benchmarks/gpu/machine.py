"""What the card can do: the ceilings that the figures of later steps are divided by."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from importlib import metadata
from importlib.util import find_spec
from typing import Any

import torch
from torch.utils.benchmark import Timer

from tests.benchmarks.gpu.material import BASE, LARGE
from tests.benchmarks.gpu.setting import Measurement, Setting
from trainer.cost.plan import SHAPES

LARGE_PRODUCT = "product 8192 x 8192 x 8192"
ADDITIONS = 1000
"""Tiny kernels in a row, whose launches are timed."""
OPTIONAL = ("flash_attn", "flash_attn_interface", "accelerate", "triton")


def measurements(setting: Setting) -> Iterator[Measurement]:
    """Versions, bandwidth, matrix products, launches."""
    device = torch.device(setting.device)
    yield "versions", partial(versions, device)
    yield "copy", partial(copy_speed, setting, device)
    size, tokens = setting.pick(8192, 256), setting.pick(65536, 256)
    yield LARGE_PRODUCT, partial(product_speed, size, size, size, device)
    for name in (BASE, LARGE):
        width, inner = SHAPES[name]["hidden_size"], SHAPES[name]["intermediate_size"]
        maps = {"qkv": (width, 3 * width), "out": (width, width)}
        maps |= {"up": (width, 2 * inner), "down": (inner, width)}
        for part, sizes in maps.items():
            yield f"product {name} {part}", partial(product_speed, tokens, *sizes, device)
    yield "launches", partial(launch_cost, device)


def measured_flops(setting: Setting) -> float | None:
    """Operations a second of the large product, where this step has measured them."""
    rows = setting.results().get("machine", {}).get("rows", [])
    rates = [1e12 * row["tflops"] for row in rows if row["name"] == LARGE_PRODUCT]
    return rates[-1] if rates else None


def versions(device: torch.device) -> dict[str, Any]:
    """Of the libraries and the card, and which optional packages are there."""
    names = ("torch", "transformers", "tokenizers", "numpy")
    found: dict[str, Any] = {name: metadata.version(name) for name in names}
    found["there"] = [name for name in OPTIONAL if find_spec(name) is not None]
    if device.type == "cuda":
        properties = torch.cuda.get_device_properties(device)
        found["card"] = properties.name
        found["gib"] = round(properties.total_memory / 2**30, 1)
        found["cuda"] = torch.version.cuda
        found["cudnn"] = torch.backends.cudnn.version()
    return found


def copy_speed(setting: Setting, device: torch.device) -> dict[str, Any]:
    """GB a second of a copy on the device, read and written bytes together."""
    source = torch.ones(setting.pick(1 << 32, 1 << 22), dtype=torch.uint8, device=device)
    target = torch.empty_like(source)
    seconds = seconds_of(lambda: target.copy_(source))
    return {"gb_per_s": round(2 * len(source) / seconds / 1e9, 1)}


def product_speed(rows: int, inner: int, columns: int, device: torch.device) -> dict[str, Any]:
    """TFLOP a second of a product of random bf16 matrices."""
    left = torch.randn(rows, inner, device=device).bfloat16()
    right = torch.randn(columns, inner, device=device).bfloat16()  # as linear maps keep theirs
    rate = 2 * rows * inner * columns / seconds_of(lambda: left @ right.t()) / 1e12
    return {"shape": [rows, inner, columns], "tflops": round(rate, 3)}


def launch_cost(device: torch.device) -> dict[str, Any]:
    """Microseconds of a launch, and of a node of a CUDA graph."""
    value = torch.zeros(8, device=device)

    def add() -> None:
        for _ in range(ADDITIONS):
            value.add_(1.0)

    figures = {"launch_us": round(1e6 * seconds_of(add) / ADDITIONS, 2)}
    if device.type == "cuda":
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            add()
        figures["graph_node_us"] = round(1e6 * seconds_of(graph.replay) / ADDITIONS, 3)
    return figures


def seconds_of(work: Callable[[], object]) -> float:
    """Median seconds of the work, until the device has done it."""
    timer = Timer("work()", globals={"work": work}, num_threads=torch.get_num_threads())
    return float(timer.blocked_autorange(min_run_time=0.2).median)
