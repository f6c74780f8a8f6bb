"""Options of the span head."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from biobench.schema.strict import Strict


class SpanOptions(Strict):
    """What stands between the encoder's states and spans that may nest (head.span)."""

    variant: Literal["crf_biaffine", "biaffine", "paper_variant"] = "crf_biaffine"
    """crf_biaffine: gated BiLSTM, a tagger per type trained by its likelihood, a biaffine scorer over all spans.
    biaffine: the scorer alone, on the encoder's states. paper_variant: one tagger for all types without a
    likelihood term, sampled spans, one type a span, as in the code behind the published French table."""
    layers: int = Field(3, ge=1, le=8)
    """BiLSTM layers (not in `biaffine`)."""
    width: int = Field(400, ge=2, multiple_of=2)
    """Width of the BiLSTM's states, both directions together."""
    biaffine_width: int = Field(64, ge=1)
    """Width of a begin or end vector of one type."""
    max_span: int = Field(40, ge=1, le=512)
    """Longest span that the biaffine scorer sees, in words (in sub-tokens with `pooling: none`)."""
    same_type_overlaps: Literal["keep", "filter"] | None = None
    """filter: of overlapping spans of one type the most confident stays. null: keep; filter in `paper_variant`."""

    @property
    def filters(self) -> bool:
        """Whether spans of one type may not overlap."""
        if self.same_type_overlaps is None:
            return self.variant == "paper_variant"
        return self.same_type_overlaps == "filter"
