"""Every encoder as one thing: sequences of ids in, `hidden (tokens, width)` out.

Families that dispatch their attention through the model library run packed: documents end to end in
one row, no padding. At load time the packed states are proved equal to the padded ones on probe
sequences; a family that cannot run packed, or whose proof fails, runs padded, and one whose states
feel the padding (FNet, ConvBERT) runs in groups of one length. Which one is used is part of the
record.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cached_property, partial
from typing import Any, Literal, cast

import numpy as np
import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from biobench.core.arrays import Ints
from biobench.core.attention import (
    Kernels,
    Pair,
    activate,
    fastest_first,
    find_kernels,
    prove,
    states_and_gradients,
)
from biobench.core.machine import computing_in, random_state, set_random_state, to_device
from biobench.core.text import first_line
from biobench.models.attention import GATHERED, PACKED, Layout, packed
from biobench.models.dropout import use_cheap_dropout
from biobench.models.inputs import (
    BUCKETS,
    by_length,
    filling,
    packed_inputs,
    padded_inputs,
    states_of,
    token_types,
)
from biobench.models.last_layer import LastLayer, find_last_layer
from biobench.models.probes import Probes, agree

Attention = Literal["packed", "padded", "alone"]
Sequences = Sequence[Ints]
"""The ids, or the token types, of some texts."""

COMPILED, PLAIN = "compiled layers", "plain layers"
_LONGEST = 1024
"""Tokens of a document up to which a padded batch is compiled; longer ones run in blocks."""
_OWN_REACH = 1024
"""Tokens that a checkpoint's own code is tried on: its config may call a local window anything."""


class Encoder(nn.Module):
    """An encoder that maps sequences to `hidden (tokens, width)`, tokens of all sequences end to
    end.
    """

    def __init__(self, model: PreTrainedModel, pad_id: int, vocabulary: Ints | None = None) -> None:
        """vocabulary: ids that may stand in a text, for probe sequences; all of the config's by
        default.
        """
        super().__init__()
        self.model = model
        self.pad_id = pad_id
        if vocabulary is None:
            vocabulary = np.arange(model.config.vocab_size)
        self.vocabulary = vocabulary
        self.probes = Probes(model.config, vocabulary[vocabulary != pad_id])
        self.global_first = False
        """Whether the first token sees all others, and they it; see `read_first_token`."""
        self.inputs = frozenset(inspect.signature(model.forward).parameters)
        """What the model can be given, by name."""
        self.width = 0
        """Of a state, as the model gives it; a config may say another (Reformer)."""
        self.position_offset = 0
        self.attention: Attention = "padded"
        self.kernels = find_kernels()
        """Variable-length kernels that may compute packed attention; see `prove_kernels`."""
        self.refusals: list[str] = []
        """Why kernels that the machine has are not used."""
        self.paths: dict[str, str] = {}
        """Accelerators: what computed packed attention in training, why it was no kernel; compiled
        or plain layers.
        """
        self.compiles = False
        """Whether layers are compiled in training; see `compile_layers`."""
        self.plain: str | None = None
        """Accelerators: why layers are not compiled."""
        self.last_layer: LastLayer | None = None
        """Packed models whose last layer can leave out tokens that a head does not read."""
        self.warned: set[str] = set()
        """Of what the user was warned: `slow_parts`."""
        # A pooler feeds nothing here; without it no gradient, memory or weight decay is spent on
        # it. Some families call it unasked.
        if hasattr(model, "pooler"):
            setattr(model, "pooler", nn.Identity())  # noqa: B010
        # BigBird goes over to full attention for good at its first short batch: states would depend
        # on the past.
        if model.config.model_type == "big_bird":
            cast(Any, model).set_attention_type("original_full")
        use_cheap_dropout(model)
        self._prove()

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return next(self.model.parameters()).device

    def forward(
        self, sequences: Sequences, types: Sequences = (), read: Tensor | None = None
    ) -> Tensor:
        """hidden: (sum of lengths, width).

        types: token types of each sequence (empty: all 0); only encoders that were built with
        several read them. read: the rows that are asked for, ascending; the others may be 0.
        """
        readable = None
        if "token_type_ids" in self.inputs:
            readable = token_types(sequences, types, self.model.config)
        if self.attention == "packed":
            return self._packed(sequences, readable, read)
        if self.attention == "padded":
            return self._padded(sequences, readable)
        return self._alone(sequences, readable)

    @cached_property
    def runs_in_bf16(self) -> bool:
        """Whether the model computes under bf16 autocast, in which DeBERTa v1 mixes types."""
        try:
            with computing_in("bf16", self.device):
                self._at_rest(self.probes.sequences()[-1:])
        except RuntimeError:
            return False
        return True

    @cached_property
    def first_token_reads(self) -> bool:
        """Whether the first token's state depends on the rest, unlike under causal attention."""
        return self._first_token_sees(self.probes.length(), 1)

    @cached_property
    def first_token_reads_far(self) -> bool:
        """Whether the first token's state depends on tokens beyond any local window."""
        length = self.probes.length()
        if not type(self.model).__module__.startswith("transformers."):
            length = self.probes.length(least=_OWN_REACH)
        return self._first_token_sees(length, max(1, 2 * length // 3))

    def _first_token_sees(self, length: int, begin: int) -> bool:
        """Whether the first token's state depends on the tokens of a probe from `begin` on."""
        sequence = self.probes.draw(np.random.default_rng(0), length)
        changed = self.probes.draw(np.random.default_rng(1), length)
        changed[:begin] = sequence[:begin]
        return not torch.equal(self._at_rest([sequence])[0], self._at_rest([changed])[0])

    def read_first_token(self, reads: bool) -> None:
        """Say whether a head reads the first token: it then gets global attention where the family
        has such an input, as in the library's own classifiers (Longformer).
        """
        takes_global = reads and "global_attention_mask" in self.inputs
        if takes_global != self.global_first:
            self.global_first = takes_global
            for name in ("first_token_reads", "first_token_reads_far"):
                self.__dict__.pop(name, None)

    def prove_kernels(self) -> None:
        """Leave out each kernel that gives other states or gradients, on the model's device."""
        kernels = self.kernels
        self.use_kernels(())
        if not kernels or self.attention != "packed" or not self.runs_in_bf16:
            return
        sequences = self.probes.sequences()
        pair = partial(self._pair, sequences)
        try:
            exact = pair()
        except (RuntimeError, ValueError) as error:  # code of one's own may name no such table
            self.refusals = [f"gradients at the embeddings are not known: {first_line(error, 120)}"]
            return
        with computing_in("bf16", self.device):
            drops = self._drops_attention(sequences)
            sound, self.refusals = prove(kernels, exact, pair(), pair, drops=drops)
        self.use_kernels(sound)

    def time_kernels(self, sequences: Sequences) -> None:
        """From now on use the kernel that is fastest, forward and backward, over these texts."""
        with computing_in("bf16", self.device):
            kernels = fastest_first(self.kernels, lambda chosen: self._pair(sequences, chosen))
        self.use_kernels(kernels)

    def use_kernels(self, kernels: Kernels) -> None:
        """From now on choose from these kernels; the first one is asked first."""
        self.kernels = kernels
        activate(kernels)

    def _pair(self, sequences: Sequences, kernels: Kernels = ()) -> Pair:
        """States and gradients without dropout, by these kernels."""
        self.use_kernels(kernels)
        with self._mode(training=False):
            return states_and_gradients(self.model, lambda: self(sequences))

    def _drops_attention(self, sequences: Sequences) -> bool:
        """Whether the model trains with dropout on attention."""
        layout, inputs = self._laid_out(sequences)
        draws = random_state(self.device)
        with self._mode(training=True), torch.no_grad(), packed(layout):
            states_of(self.model, inputs)
        set_random_state(draws, self.device)
        return layout.drops

    def compile_layers(self, backend: str | Callable[..., Any] = "inductor") -> None:
        """From now on compile the model in training, all layers as one region: once for each of
        `BUCKETS` that occurs.

        A batch is padded to its bucket by documents that no other one sees. The first batch of a
        run is computed by plain layers, which note what computes attention.
        """
        if self.attention != "packed":
            self.plain = f"documents run {self.attention}"
        elif torch._dynamo.config.disable:
            self.plain = "TORCH_COMPILE_DISABLE is set"
        else:
            self.plain = self._misreading()
        if self.plain is not None:
            return
        # With and without token types, and anew where an adapter has changed the layers.
        torch._dynamo.config.recompile_limit = 4 * len(BUCKETS)
        self.model.compile(backend=backend, dynamic=False, fullgraph=True)
        self.compiles = True

    def _misreading(self) -> str | None:
        """Why rows of its table do not give the states that ids give; ESM then has no positions."""
        layout, inputs = self._laid_out(self.probes.sequences())
        try:
            with self._mode(training=False), torch.no_grad(), packed(layout):
                same = agree(
                    states_of(self.model, inputs, by_table=True),
                    states_of(self.model, inputs),
                )
        except Exception as error:  # what a model's own code raises has no common class
            return f"the model does not read embeddings: {first_line(error, 120)}"
        if not same:
            return "the model does not read embeddings as it reads ids"
        return None

    def _laid_out(self, sequences: Sequences) -> tuple[Layout, dict[str, Ints]]:
        """A layout without kernels, and the model's inputs."""
        layout = Layout([len(sequence) for sequence in sequences], self.device)
        return layout, packed_inputs(sequences, None, self.position_offset)

    def gives_up_compiling(self, error: BaseException) -> bool:
        """Whether layers were compiled until this error came; from now on they are plain."""
        compiled, self.compiles = COMPILED in self.paths, False
        if compiled:
            del self.paths[COMPILED]
            self.plain = first_line(" ".join(str(error).split()), 160)
        return compiled

    def slow_parts(self) -> dict[str, str]:
        """What is slow in training on an accelerator (attention, plain layers), and why."""
        reasons = {}
        if self.plain is not None:
            reasons["layers not compiled"] = self.plain
        if GATHERED in self.paths:
            reasons["slow attention"] = "; ".join(self.refusals or [self.paths[GATHERED]])
        return reasons

    def _at_rest(self, sequences: Sequences) -> Tensor:
        """States without dropout and gradients, in fp32."""
        with self._mode(training=False), torch.no_grad():
            states: Tensor = self(sequences)
            return states.float()

    @contextmanager
    def _mode(self, *, training: bool) -> Iterator[None]:
        """Meanwhile the model drops as in training, or not at all."""
        previous = self.model.training
        self.model.train(training)
        try:
            yield
        finally:
            self.model.train(previous)

    def _packed(
        self,
        sequences: Sequences,
        types: Sequences | None = None,
        read: Tensor | None = None,
    ) -> Tensor:
        lengths = [len(sequence) for sequence in sequences]
        tokens = sum(lengths)
        longest = max(lengths)
        if self._compiled(tokens, longest):
            return self._by_compiled_layers(sequences, types)[:tokens]
        layout = Layout(lengths, self.device, self.kernels)
        with packed(layout), self._stance(), self._reading(read):
            inputs = packed_inputs(sequences, types, self.position_offset)
            states = states_of(self.model, inputs)
        if self.model.training:
            self.paths.update(layout.paths)
        return states.flatten(0, 1)

    def _by_compiled_layers(self, sequences: Sequences, types: Sequences | None) -> Tensor:
        """(tokens of the bucket, width): the states of these sequences, then of what fills it."""
        lengths = [len(sequence) for sequence in sequences]
        added = filling(sum(lengths), max(lengths), self.pad_id)
        lengths += [len(sequence) for sequence in added]
        if types is not None:
            types = [*types, *map(np.zeros_like, added)]
        layout = Layout(lengths, self.device, self.kernels, compiled=True)
        layout.ready(gathered=GATHERED in self.paths)
        self.paths[COMPILED] = ""
        with packed(layout):
            inputs = packed_inputs([*sequences, *added], types, self.position_offset)
            return states_of(self.model, inputs, by_table=True).flatten(0, 1)

    def _stance(self) -> AbstractContextManager[Any]:
        """Plain layers where some batches are compiled and this one is not."""
        if not self.compiles and self.plain is None:
            return nullcontext()
        eager: AbstractContextManager[Any] = torch.compiler.set_stance("force_eager")
        return eager

    def _reading(self, read: Tensor | None) -> AbstractContextManager[None]:
        """The last layer for these rows alone, where it can leave out the others."""
        if read is None or self.last_layer is None or not self.last_layer.draws_alike:
            return nullcontext()
        return self.last_layer.only(read)

    def _compiled(self, tokens: int, longest: int) -> bool:
        """Whether compiled layers compute this batch."""
        if not (self.compiles and self.model.training and self.paths):
            return False
        in_blocks = GATHERED in self.paths and longest > _LONGEST
        return tokens < BUCKETS[-1] and not in_blocks

    def _padded(self, sequences: Sequences, types: Sequences | None = None) -> Tensor:
        inputs = padded_inputs(sequences, types, self.pad_id)
        if self.global_first:
            seen_by_all = np.zeros_like(inputs["attention_mask"])
            seen_by_all[:, 0] = 1
            inputs["global_attention_mask"] = seen_by_all
        rows = to_device(inputs["attention_mask"].reshape(-1).nonzero()[0], self.device)
        return states_of(self.model, inputs).flatten(0, 1)[rows]

    def _alone(self, sequences: Sequences, types: Sequences | None = None) -> Tensor:
        """As `_padded`, those of one length at a time, so that nothing is padded."""
        states: dict[int, Tensor] = {}
        for length, members in by_length(sequences).items():
            types_of_members = types and [types[index] for index in members]
            rows = self._padded([sequences[index] for index in members], types_of_members)
            states.update(zip(members, torch.split(rows, length), strict=True))
        return torch.cat([states[index] for index in range(len(sequences))])

    def _prove(self) -> None:
        """Choose packed attention if it gives the padded states; else stay padded, unless padding
        changes states.
        """
        sequences = self.probes.sequences()
        with self._mode(training=False), torch.no_grad():
            padded = self._padded(sequences).float()
            self.width = padded.shape[-1]
            if self._runs_packed(sequences, padded):
                self.attention = "packed"
                self._prove_last_layer(sequences)
            elif not agree(padded, self._alone(sequences).float()):
                self.attention = "alone"

    def _runs_packed(self, sequences: Sequences, wanted: Tensor) -> bool:
        """Whether packed states are these, at positions from 0 or from the one behind padding."""
        model = self.model
        takes_layout = getattr(model, "_supports_attention_backend", False)
        if not takes_layout or "position_ids" not in self.inputs:
            return False
        previous = model.config._attn_implementation
        model.set_attn_implementation(PACKED)
        longest = max(map(len, sequences))
        for offset in (0, 1 + self.probes.padding_id()):
            self.position_offset = offset
            is_possible = offset == 0 or self.probes.reaches(offset + longest)
            if is_possible and agree(self._packed(sequences).float(), wanted):
                return True
        self.position_offset = 0
        model.set_attn_implementation(previous)
        return False

    def _prove_last_layer(self, sequences: Sequences) -> None:
        """Leave out tokens in the last layer if those that are read keep their states."""
        exact = self._packed(sequences)
        read = torch.arange(0, len(exact), 2, device=self.device)
        self.last_layer = find_last_layer(self.model)
        states = self._packed(sequences, read=read)
        if not agree(states[read], exact[read]):
            self.last_layer = None
