"""Needle examples fitted to a model's own tokens: query first, then the document, exactly as long
as planned.

Only the haystack is fitted. The needle stays whole, with the planned share of the haystack before
it; an example that is longer than the model's window is skipped, because a score on cut text would
say nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from biobench.core.arrays import ints
from biobench.encode.pairs import pair_form
from biobench.encode.tokens import Encoded, Ids, ids_of, tokenised
from biobench.errors import ModelError, TrainingError
from biobench.kinds.base import Answered, Cut, Documents, register
from biobench.kinds.labels import ACCURACY, SingleLabel, is_right
from biobench.schema.document import Document, Prediction
from biobench.schema.needle import Key, NeedlePlan, cell_of, keys_of, name_of
from biobench.schema.task import TaskSpec

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase as Tokenizer

_CHUNK = 32
"""Documents written out and tokenised at once; the longest hold some 60,000 characters."""


@register
class Needle(SingleLabel):
    """Is the queried fact in the document? One label a document, present or absent."""

    name = "needle"
    label_rules = False
    metrics = (ACCURACY,)

    def cut(self, spec: TaskSpec, documents: Documents, tokenizer: Tokenizer, window: int) -> Cut:
        """The documents whose length the window allows, whole; what does not fit has no prediction
        and no score.
        """
        fitting, encoded = encode_needles(documents, tokenizer, window)
        owners = list(range(len(fitting)))
        if documents and not fitting:
            raise TrainingError(
                f"no document of {documents[0].split} fits a window of {window} tokens",
                hint="the model reads none of their lengths; add shorter ones to reader.lengths, "
                "or raise --limit if given",
            )
        return fitting, fitting, encoded, owners

    def drawn(self, part: bool) -> dict[str, str] | None:
        """Parts are drawn in pairs; they were once drawn example by example, and such runs are
        others.
        """
        if part:
            return {"drawn": "pairs"}
        return None

    def extra_scores(self, run: Answered) -> dict[str, float]:
        """accuracy, and that of each length, position, template, and length with position."""
        return super().extra_scores(run) | accuracies(run.gold, run.predictions)


def accuracies(gold: Documents, predictions: Mapping[str, Prediction]) -> dict[str, float]:
    """Name to accuracy of every slice but the whole; nothing where the ids name no cells."""
    answers: dict[Key, list[bool]] = defaultdict(list)
    for document in gold:
        cell = cell_of(document.id)
        if cell is not None:
            right = is_right(document, predictions)
            _, *slices = keys_of(cell)
            for key in slices:
                answers[key].append(right)
    shares: dict[str, float] = {}
    for key in sorted(answers, key=_place_of):
        of_slice = answers[key]
        shares[name_of(key)] = sum(of_slice) / len(of_slice)
    return shares


def _place_of(key: Key) -> tuple[bool, bool, int, str, str]:
    """Where a slice stands: those of all templates first, and lengths before their absence."""
    length, position, template = key
    return template is not None, length is None, length or 0, position or "", template or ""


def encode_needles(
    documents: Documents, tokenizer: Tokenizer, window: int
) -> tuple[list[Document], list[Encoded]]:
    """The documents that fit `window` tokens, and their ids; the others are skipped.

    fit tokens: each is exactly plan.length long, special tokens included. fit words: as long as its
    words make it. Raises ModelError where the tokenizer cannot make a pair or makes fewer tokens
    than there are words.
    """
    form = pair_form(tokenizer)
    fitting: list[Document] = []
    encoded: list[Encoded] = []
    candidates = within_window(documents, window)
    pieces_of_each = _pieces(candidates, tokenizer)
    for document, pieces in zip(candidates, pieces_of_each, strict=True):
        query = ids_of(tokenizer, document.query)
        taken = form.added + len(query)
        body = _fitted(document, pieces, taken)
        if taken + len(body) <= window:
            fitting.append(document)
            encoded.append(form.encoded(query, body, truncated=False))
    return fitting, encoded


def within_window(documents: Documents, window: int) -> list[Document]:
    """All documents but needle examples of whole tokens that are longer than the window."""
    within = []
    for document in documents:
        plan = _plan_of_tokens(document)
        if plan is None or plan.length <= window:
            within.append(document)
    return within


def _plan_of_tokens(document: Document) -> NeedlePlan | None:
    """The plan of a document that is fitted to a number of tokens; None where its words are."""
    plan = document.plan
    if plan is None or plan.fit == "words":
        return None
    return plan


def _fitted(document: Document, pieces: tuple[Ids, Ids, Ids], taken: int) -> Ids:
    """The document's ids: the last of those before the needle, the needle, the first of those after
    it. taken: tokens of the pair besides them.
    """
    plan = _plan_of_tokens(document)
    head, needle, tail = pieces
    if plan is None:
        return head + needle + tail
    room = plan.length - taken - len(needle)
    before = round(plan.place * room)
    after = room - before
    if room < 0 or before > len(head) or after > len(tail):
        present = f"{len(head)} + {len(needle)} + {len(tail)}"
        raise ModelError(
            f"document {{}} cannot be fitted to {plan.length} tokens ({present} are there)",
            value=document.id,
            hint="the tokenizer makes fewer tokens than the text has words; use reader.fit: words",
        )
    return head[len(head) - before :] + needle + tail[:after]


def _pieces(documents: Documents, tokenizer: Any) -> Iterator[tuple[Ids, Ids, Ids]]:
    """Ids before, of and after the needle; the text is tokenised whole where the tokenizer gives
    offsets.
    """
    if not tokenizer.is_fast:
        for document in documents:
            head, needle, tail = (_ids(text, tokenizer) for text in _texts(document))
            yield head, needle, tail
        return
    for begin in range(0, len(documents), _CHUNK):
        yield from _cut(documents[begin : begin + _CHUNK], tokenizer)


def _cut(documents: Documents, tokenizer: Tokenizer) -> Iterator[tuple[Ids, Ids, Ids]]:
    """The pieces of documents that are written out and tokenised together."""
    texts = [_texts(document) for document in documents]
    whole_texts = ["".join(parts) for parts in texts]
    rows = tokenised(whole_texts, tokenizer, offsets=True)
    for (text_before, needle_text, _), (ids, offsets) in zip(texts, rows, strict=True):
        begin = len(text_before)
        end = begin + len(needle_text)
        # A token that reaches into the needle belongs to it; text keeps its order, so both are
        # sorted.
        token_begins, token_ends = ints(offsets).reshape(-1, 2).T
        low = int(token_ends.searchsorted(begin, side="right"))
        high = int(token_begins.searchsorted(end, side="left"))
        yield ids[:low], ids[low:high], ids[high:]


def _ids(text: str, tokenizer: Tokenizer) -> Ids:
    if text.strip():
        return ids_of(tokenizer, text)
    return []


def _texts(document: Document) -> tuple[str, str, str]:
    """The text before, of and after the needle."""
    plan = document.plan
    if plan is None or (plan.fit == "words" and not plan.needle):
        return "", document.text, ""
    if plan.fit == "words":
        return document.text.partition(plan.needle)
    head = "".join(f"{sentence} " for sentence in plan.before)
    tail = " ".join(plan.after)
    if tail and plan.needle:
        tail = f" {tail}"
    return head, plan.needle, tail
