"""What the card can do: the ceilings that the figures of later steps are divided by."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from functools import partial
from importlib import metadata
from importlib.util import find_spec
from typing import Any

import torch

from tests.benchmarks.gpu.clock import Clock, wait
from tests.benchmarks.gpu.material import BASE, LARGE
from tests.benchmarks.gpu.setting import Measurement, Setting
from trainer.cost.plan import SHAPES

LARGE_PRODUCT = "product 8192 x 8192 x 8192"
ADDITIONS = 1000
"""Tiny kernels in a row, whose launches are timed; a device's queue holds 1,024."""


def measurements(setting: Setting) -> Iterator[Measurement]:
    """Versions, bandwidth, matrix products, launches."""
    device = torch.device(setting.device)
    yield "versions", partial(versions, device)
    yield "copy", partial(copy_speed, setting, device)
    size = setting.pick(8192, 256)
    yield LARGE_PRODUCT, partial(product_speed, size, size, size, device)
    tokens = setting.pick(65536, 256)
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
    optional = ("flash_attn", "flash_attn_interface", "accelerate", "triton")
    found: dict[str, Any] = {name: metadata.version(name) for name in names}
    found["there"] = [name for name in optional if find_spec(name) is not None]
    if device.type == "cuda":
        properties = torch.cuda.get_device_properties(device)
        found["card"] = properties.name
        found["gib"] = round(properties.total_memory / 2**30, 1)
        found["multiprocessors"] = properties.multi_processor_count
        found["cuda"] = torch.version.cuda
        found["cudnn"] = torch.backends.cudnn.version()
    return found


def copy_speed(setting: Setting, device: torch.device) -> dict[str, Any]:
    """GB a second of a copy on the device, read and written bytes together."""
    count = setting.pick(1 << 32, 1 << 22)
    source = torch.ones(count, dtype=torch.uint8, device=device)
    target = torch.empty_like(source)
    seconds = repeated(lambda: target.copy_(source), device)
    return {"gb_per_s": round(2 * count / seconds / 1e9, 1)}


def product_speed(rows: int, inner: int, columns: int, device: torch.device) -> dict[str, Any]:
    """TFLOP a second of a product of random bf16 matrices."""
    left = torch.randn(rows, inner, device=device).bfloat16()
    right = torch.randn(columns, inner, device=device).bfloat16()  # as linear maps keep theirs
    seconds = repeated(lambda: left @ right.t(), device)
    rate = 2 * rows * inner * columns / seconds / 1e12
    return {"shape": [rows, inner, columns], "tflops": round(rate, 3)}


def launch_cost(device: torch.device) -> dict[str, Any]:
    """Microseconds of the host for a launch, and of the device for a node of a CUDA graph."""
    value = torch.zeros(8, device=device)

    def add() -> None:
        for _ in range(ADDITIONS):
            value.add_(1.0)

    add()
    wait(device)
    began = time.perf_counter()
    add()
    launch = time.perf_counter() - began
    figures = {"launch_us": round(1e6 * launch / ADDITIONS, 2)}
    if device.type == "cuda":
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            add()
        figures["graph_node_us"] = round(1e6 * repeated(graph.replay, device) / ADDITIONS, 3)
    return figures


def repeated(work: Callable[[], object], device: torch.device, times: int = 10) -> float:
    """Median seconds of the work on the device, the first three times not counted."""
    clock = Clock(device)
    for _ in range(times + 4):
        work()
        clock.tick()
    return statistics.median(clock.milliseconds()[3:]) / 1000
