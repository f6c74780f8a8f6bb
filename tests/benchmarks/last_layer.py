"""The last layer for first tokens alone, beside all tokens: processor milliseconds a training step.

    OMP_NUM_THREADS=1 python -m tests.benchmarks.last_layer [--rounds 7]

An encoder of MiniLM's size with random weights on 16 texts of 25 to 90 tokens; the contenders
alternate.
"""

from __future__ import annotations

import argparse
import statistics
import time

import numpy as np
import torch
from transformers import AutoModel, BertConfig

from biobench.encode.tokens import Encoded
from biobench.finetune.network import Network
from biobench.models.encoder import Encoder
from biobench.models.heads import LinearHead

SIZES = {
    "vocab_size": 3000,
    "hidden_size": 384,
    "num_hidden_layers": 6,
    "num_attention_heads": 12,
    "intermediate_size": 1536,
}


def texts() -> list[Encoded]:
    """Sixteen windows of random ids."""
    random = np.random.default_rng(0)
    windows = []
    for length in random.integers(25, 91, 16):
        words = np.arange(length)
        ids = random.integers(5, SIZES["vocab_size"], length)
        windows.append(Encoded(ids, words, words, truncated=False, stop=words + 1))
    return windows


def step(network: Network, batch: list[Encoded], precision: torch.dtype) -> float:
    """Processor milliseconds of forward and backward."""
    began = time.process_time()
    with torch.autocast("cpu", precision, enabled=precision == torch.bfloat16):
        logits = network(batch)
    logits.square().mean().backward()
    network.zero_grad()
    return 1000 * (time.process_time() - began)


def main() -> None:
    """Print the median step of both, and their ratio."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=7)
    rounds = parser.parse_args().rounds
    batch = texts()
    encoder = Encoder(AutoModel.from_config(BertConfig(**SIZES)), pad_id=0).train()
    network = Network(encoder, LinearHead(encoder.width, 3, 0.1, 0.02, "cls"))
    last_layer = encoder.last_layer
    for precision in (torch.float32, torch.bfloat16):
        taken: dict[bool, list[float]] = {False: [], True: []}
        for _ in range(rounds):
            for limited, times in taken.items():
                encoder.last_layer = last_layer if limited else None
                times.append(step(network, batch, precision))
        whole, first_tokens = (statistics.median(times[1:]) for times in taken.values())
        print(f"{precision}: {whole:.0f} ms, {first_tokens:.0f} ms, {whole / first_tokens:.2f}")


if __name__ == "__main__":
    main()
