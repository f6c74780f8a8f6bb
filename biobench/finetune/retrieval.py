"""Concepts of unseen names, by the cosine of their states with those of the known names; nothing is learned."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn.functional import normalize

from biobench.finetune.features import Features
from biobench.finetune.loop import Outcome
from biobench.finetune.prepare import Prepared
from biobench.finetune.similarity import without_training
from biobench.kinds.synonyms import first_concepts
from biobench.models.encoder import Encoder

_QUERIES = 256
"""Queries that are compared at once."""


def rank_concepts(features: Features, prepared: Prepared, encoder: Encoder) -> Outcome:
    """For each query the concepts of the candidates, in order of the candidates' cosines with it.

    A concept stands where its most similar candidate stands; equally similar candidates keep their order, as do the
    concepts of one candidate.
    """
    known = normalize(features.states["train"][:, 0].float(), dim=-1)

    def answers(name: str) -> list[NDArray[np.int64]]:
        asked = normalize(features.states[name][:, 0].float(), dim=-1)
        concepts = [target.tolist() for target in prepared.train.targets]
        rows: list[NDArray[np.int64]] = []
        for part in torch.split(asked, _QUERIES):
            nearest = torch.argsort(part @ known.T, dim=-1, descending=True, stable=True)
            rows += [np.array(first_concepts(row, concepts), dtype=np.int64) for row in nearest.tolist()]
        return rows

    return without_training(prepared, features, encoder, answers)
