"""Needle examples fitted to a model's own tokens: query first, then the document, exactly as long
as planned.

Only the haystack is fitted. The needle stays whole, with the planned share of the haystack before
it; an example that is longer than the model's window is skipped, because a score on cut text would
say nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from biobench.encode.pairs import pair_form
from biobench.encode.tokens import Encoded, Ids, ids_of
from biobench.errors import ModelError, TrainingError
from biobench.kinds.base import Answered, Cut, Documents, register
from biobench.kinds.labels import ACCURACY, SingleLabel
from biobench.schema.document import Document, Prediction
from biobench.schema.needle import Key, NeedlePlan, cell_of, keys_of, name_of
from biobench.schema.task import TaskSpec

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase as Tokenizer


@register
class Needle(SingleLabel):
    """Is the queried fact in the document? One label a document, present or absent."""

    name, label_rules = "needle", False
    metrics = (ACCURACY,)

    def cut(self, spec: TaskSpec, documents: Documents, tokenizer: Tokenizer, window: int) -> Cut:
        """The documents whose length the window allows, whole; what does not fit has no prediction
        and no score.
        """
        fitting, encoded = encode_needles(documents, tokenizer, window)
        if documents and not fitting:
            raise TrainingError(
                f"no document of {documents[0].split} fits a window of {window} tokens",
                hint="the model reads none of their lengths; add shorter ones to reader.lengths, "
                "or raise --limit if given",
            )
        return fitting, fitting, encoded, list(range(len(fitting)))

    def drawn(self, part: bool) -> dict[str, str] | None:
        """Parts are drawn in pairs; they were once drawn example by example, and such runs are
        others.
        """
        return {"drawn": "pairs"} if part else None

    def extra_scores(self, run: Answered) -> dict[str, float]:
        """accuracy, and that of each length, position, template, and length with position."""
        return super().extra_scores(run) | accuracies(run.gold, run.predictions)


def accuracies(gold: Documents, predictions: Mapping[str, Prediction]) -> dict[str, float]:
    """Name to accuracy of every slice but the whole; nothing where the ids name no cells."""
    right: dict[Key, list[int]] = defaultdict(lambda: [0, 0])
    for document in gold:
        cell = cell_of(document.id)
        if cell is None:
            continue
        prediction = predictions.get(document.id)
        for key in keys_of(cell)[1:]:
            right[key][0] += prediction is not None and prediction.labels == document.labels
            right[key][1] += 1
    order = sorted(
        right, key=lambda k: (k[2] is not None, k[0] is None, k[0] or 0, k[1] or "", k[2] or "")
    )
    return {name_of(key): right[key][0] / right[key][1] for key in order}


_CHUNK = 32
"""Documents tokenised at once; the longest hold some 60,000 characters."""


def encode_needles(
    documents: Sequence[Document], tokenizer: Tokenizer, window: int
) -> tuple[list[Document], list[Encoded]]:
    """The documents that fit `window` tokens, and their ids; the others are skipped.

    fit tokens: each is exactly plan.length long, special tokens included. fit words: as long as its
    words make it. Raises ModelError where the tokenizer cannot make a pair or makes fewer tokens
    than there are words.
    """
    form = pair_form(tokenizer)
    fitting: list[Document] = []
    encoded: list[Encoded] = []
    candidates = [
        d for d in documents if d.plan is None or d.plan.fit == "words" or d.plan.length <= window
    ]
    for begin in range(0, len(candidates), _CHUNK):
        chunk = candidates[begin : begin + _CHUNK]
        for document, pieces in zip(chunk, _pieces(chunk, tokenizer), strict=True):
            query = ids_of(tokenizer, document.query)
            taken = form.added + len(query)
            body = _fitted(document, pieces, taken)
            if taken + len(body) <= window:
                fitting.append(document)
                encoded.append(form.encoded(query, body, truncated=False))
    return fitting, encoded


def _fitted(document: Document, pieces: tuple[Ids, Ids, Ids], taken: int) -> Ids:
    """The document's ids: the last of those before the needle, the needle, the first of those after
    it. taken: tokens of the pair besides them.
    """
    plan, (head, needle, tail) = document.plan, pieces
    if plan is None or plan.fit == "words":
        return head + needle + tail
    room = plan.length - taken - len(needle)
    to_left = round(plan.place * room)
    if room < 0 or to_left > len(head) or room - to_left > len(tail):
        raise ModelError(
            f"document {{}} cannot be fitted to {plan.length} tokens ({len(head)} + "
            f"{len(needle)} + {len(tail)} are there)",
            value=document.id,
            hint="the tokenizer makes fewer tokens than the text has words; use reader.fit: words",
        )
    return head[len(head) - to_left :] + needle + tail[: room - to_left]


def _pieces(documents: Sequence[Document], tokenizer: Any) -> list[tuple[Ids, Ids, Ids]]:
    """Ids before, of and after the needle; the text is tokenised whole where the tokenizer gives
    offsets.
    """
    texts = [_texts(d) for d in documents]
    pieces: list[tuple[Ids, Ids, Ids]] = []
    if not tokenizer.is_fast:
        for texts_of_one in texts:
            head, needle, tail = (
                ids_of(tokenizer, text) if text.strip() else [] for text in texts_of_one
            )
            pieces.append((head, needle, tail))
        return pieces
    encoding = tokenizer(
        ["".join(texts_of_one) for texts_of_one in texts],
        add_special_tokens=False,
        return_offsets_mapping=True,
        return_attention_mask=False,
        return_token_type_ids=False,
        verbose=False,
    )
    rows = zip(texts, encoding["input_ids"], encoding["offset_mapping"], strict=True)
    for (text_before, needle_text, _), ids, offsets in rows:
        starts, ends = np.asarray(offsets).reshape(-1, 2).T
        # A token that reaches into the needle belongs to it; text keeps its order, so both are
        # sorted.
        begin = len(text_before)
        low = int(np.searchsorted(ends, begin, side="right"))
        high = int(np.searchsorted(starts, begin + len(needle_text), side="left"))
        pieces.append((list(ids[:low]), list(ids[low:high]), list(ids[high:])))
    return pieces


def _texts(document: Document) -> tuple[str, str, str]:
    """The text before, of and after the needle."""
    plan: NeedlePlan | None = document.plan
    if plan is None or (plan.fit == "words" and not plan.needle):
        return "", document.text, ""
    if plan.fit == "words":
        return document.text.partition(plan.needle)
    head = "".join(f"{word} " for word in plan.before)
    tail = " ".join(plan.after)
    if tail and plan.needle:
        tail = f" {tail}"
    return head, plan.needle, tail
