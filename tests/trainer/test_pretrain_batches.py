"""What a step is made of: sample order, masks, targets, and what its losses mean."""

from __future__ import annotations

import hashlib
import itertools
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import AutoModelForMaskedLM

from tests.helpers.trainer_make import ALONE, batches, begin, train
from tests.helpers.two_processes import curve
from trainer import api
from trainer.ledger import read_ledger
from trainer.model import objectives
from trainer.model.loss import IGNORE
from trainer.model.network import Trainee, load_model, new_model
from trainer.model.objectives import Vocabulary, capacity, masked, next_token
from trainer.order import draw, roll
from trainer.recipe.library import load_recipe
from trainer.recipe.phases import Masking
from trainer.train.batches import vocabulary_of
from trainer.train.distributed import World
from trainer.train.progress import read_metrics

SPECIAL = np.zeros(500, dtype=bool)
SPECIAL[:5] = True
WORDS = Vocabulary(end=3, mask=4, special=SPECIAL, ordinary=np.arange(5, 500))
GOLDEN_ORDER = [2, 7, 5, 8, 9, 3, 4, 1, 0, 6]
GOLDEN_HASH = "aeeef67e2221625fc960ed35da3830e1"


def drawn(rows: int = 16, length: int = 256) -> np.ndarray:
    found = np.random.RandomState(0).randint(5, 500, (rows, length)).astype(np.int64)
    found[:, 40::50] = 3
    return found


def keyed(rows: int, *, epoch: int = 0, seed: int = 17) -> list[tuple[object, ...]]:
    return [(seed, 0, epoch, i) for i in range(rows)]


def test_the_masks_of_a_window_are_philox_numbers_of_its_key() -> None:
    """Written out with whole numbers: 53 bits a number, first the choices of all tokens, then what
    becomes of them: 80% masks, 10% any ordinary word, 10% as they are.
    """
    w = drawn(1, 4000)
    made = masked(w, WORDS, Masking(rate=0.3), [(17, 1, 2, 5)])
    key = np.frombuffer(hashlib.blake2b(b"mask|17|1|2|5", digest_size=16).digest(), dtype="<u8")
    raw = [int(r) >> 11 for r in np.random.Philox(key=key.astype(np.uint64)).random_raw(8000)]
    expected, hidden = w[0].tolist(), []
    for place, token in enumerate(w[0].tolist()):
        if token < 5 or raw[place] >= 0.3 * 2**53:
            continue
        hidden.append(place)
        action = raw[4000 + place] / 2**53
        if action < 0.8:
            expected[place] = 4
        elif action < 0.9:
            expected[place] = 5 + int((action - 0.8) * 10 * 495)
    assert made.positions.tolist() == hidden
    assert made.inputs[0].tolist() == expected
    assert len({t for t in expected if t < 5}) == 2, "an end of document and masks"


def test_the_capacity_is_six_standard_deviations_above_the_mean() -> None:
    # 0.3 * 1000 + 6 * sqrt(0.3 * 0.7 * 1000) = 300 + 86.95
    assert capacity(1000, 100, Masking(rate=0.3)) == 387
    # 0.15 * 8192 * 4 + 6 * sqrt(0.15 * 0.85 * 32768) = 4915.2 + 387.82
    assert capacity(32768, 8192, Masking(rate=0.15)) == 5304
    assert capacity(10, 5, Masking(rate=0.9)) == 10
    assert capacity(32768, 8192, None) == 32764


@settings(max_examples=40)
@given(st.integers(2, 60), st.integers(0, 200), st.integers(1, 90), st.integers(0, 5))
def test_order_is_a_permutation_per_epoch_whatever_the_steps(
    total: int, first: int, count: int, seed: int
) -> None:
    indices, epochs = draw(first, count, windows=total, seed=seed)
    assert (epochs == np.arange(first, first + count) // total).all()
    one_by_one = [draw(first + i, 1, windows=total, seed=seed)[0][0] for i in range(count)]
    assert indices.tolist() == one_by_one
    whole, _ = draw(0, total, windows=total, seed=seed)
    assert sorted(whole.tolist()) == list(range(total))


def test_the_order_is_written_down() -> None:
    """What `draw` and `roll` give is compared between machines and versions, so it must never
    change.
    """
    words = np.frombuffer(hashlib.blake2b(b"windows|42|1", digest_size=16).digest(), dtype="<u4")
    second = np.random.RandomState(words.astype(np.uint32)).permutation(10).tolist()
    assert second == GOLDEN_ORDER
    assert draw(10, 10, windows=10, seed=42)[0].tolist() == GOLDEN_ORDER
    rolled = ""
    for part in (second[:4], second[4:8]):
        text = rolled.encode() + b"".join(i.to_bytes(8, "little") for i in part)
        rolled = hashlib.blake2b(text, digest_size=16).hexdigest()
    assert roll(roll("", np.array(second[:4])), np.array(second[4:8])) == rolled == GOLDEN_HASH


def test_documents_and_their_offsets_by_hand() -> None:
    """3 ends a document; a document may be a single end, and goes no further than its window."""
    w = np.array([[7, 3, 3, 8, 9], [3, 7, 7, 7, 3]])
    numbers = objectives.document_numbers(w, 3)
    assert numbers.tolist() == [[0, 0, 1, 2, 2], [0, 1, 1, 1, 1]]
    assert objectives.boundaries(numbers).tolist() == [0, 2, 3, 5, 6, 10]
    made = next_token(w, WORDS, isolate=True)
    assert made.positions.tolist() == [0, 3, 6, 7, 8]
    assert made.targets.tolist() == [3, 9, 7, 7, 3]
    assert next_token(w, WORDS, isolate=False).positions.tolist() == [0, 1, 2, 3, 5, 6, 7, 8]


def test_random_words_are_ordinary_words_of_the_tokenizer(small: list[str]) -> None:
    """A model's vocabulary may be padded beyond the tokenizer's: no such id is a word, and no
    special one.
    """
    _, tokenizer, _ = begin(small)
    vocabulary = vocabulary_of(tokenizer, 640)
    specials = set(tokenizer.all_special_ids)
    assert set(vocabulary.ordinary.tolist()) == set(tokenizer.get_vocab().values()) - specials
    assert vocabulary.ordinary.max() < 500
    assert set(np.flatnonzero(vocabulary.special).tolist()) == specials
    assert vocabulary.special.shape == (640,)
    assert (vocabulary.end, vocabulary.mask) == (tokenizer.sep_token_id, tokenizer.mask_token_id)


@pytest.mark.parametrize("phase", [0, 1])
def test_processes_and_micro_batches_share_a_step_out(phase: int, small: list[str]) -> None:
    whole = batches(small, phase).make(16)
    (one,) = whole.micros
    for size, micro, sizes in ((1, 3, [3, 3, 2]), (2, 4, [4, 4]), (2, 3, [3, 1, 3, 1])):
        own = [*small, f"batch.micro={micro}"]
        worlds = [World(rank, size, ALONE.device) for rank in range(size)]
        steps = [batches(own, phase, world=world).make(16) for world in worlds]
        for step in steps:
            assert (step.indices == whole.indices).all(), "the order hash is of the whole step"
        micros = [m for s in steps for m in s.micros]
        assert [len(m.input_ids) for m in micros] == sizes
        assert torch.equal(torch.cat([m.input_ids for m in micros]), one.input_ids)
        assert torch.equal(torch.cat([m.targets for m in micros]), one.targets)
        assert sum(s.targets for s in steps) == whole.targets == len(one.targets)


def test_the_step_prepared_ahead_is_the_one_that_is_asked_for(small: list[str]) -> None:
    made = batches(small, 1)
    for first in (0, 8, 40):
        plain = made.make(first).micros[0].input_ids
        assert torch.equal(made.at(first, prefetch=True).micros[0].input_ids, plain)
    made.close()


def test_masks_are_keyed_by_seed_phase_epoch_and_window(small: list[str]) -> None:
    made = batches(small, 1)
    windows = made.corpus.train
    first = len(windows) - 3  # the step reaches into the next pass over the corpus
    indices, epochs = draw(first, 8, windows=len(windows), seed=42)
    keys = [(17, 1, int(e), int(i)) for e, i in zip(epochs, indices, strict=True)]
    wanted = masked(windows.read(indices), made.vocabulary, made.phase.masking, keys)
    (micro,) = made.make(first).micros
    assert (micro.input_ids.numpy() == wanted.inputs).all()
    assert (micro.targets.numpy() == wanted.targets).all()


@pytest.mark.parametrize("phase", [0, 1])
def test_a_fixed_shape_changes_neither_targets_nor_loss(phase: int, small: list[str]) -> None:
    plain, fixed = (batches(small, phase, fixed=f).make(8) for f in (False, True))
    (a,), (b,) = plain.micros, fixed.micros
    assert plain.targets == fixed.targets == int((b.targets != IGNORE).sum())
    # 8 windows of 48: every token but the last of each, or 0.15 * 384 + 6 * sqrt(0.15 * 0.85 * 384)
    # = 99.6
    assert len(b.positions) == len(b.targets) == (8 * 47 if phase == 0 else 100)
    recipe, tokenizer, _ = begin(small)
    module = Trainee(new_model(recipe.base.config, tokenizer, 1))
    with torch.no_grad():
        losses = [module(m.input_ids, m.positions, m.targets, causal=phase == 0) for m in (a, b)]
    torch.testing.assert_close(*losses)


@pytest.mark.parametrize("phase", [0, 1])
def test_isolation_goes_by_the_ends_in_the_corpus(phase: int, small: list[str]) -> None:
    own = [*small, "corpus.sequence_length=480", f"phases.{phase}.isolate_documents=true"]
    made = batches([*own, "phases.1.masking.rate=0.9"], phase)
    step = made.make(0)
    (micro,) = step.micros
    windows = made.corpus.train.read(step.indices)
    numbers = objectives.document_numbers(windows, made.vocabulary.end)
    offsets = objectives.boundaries(numbers).tolist()
    assert len(offsets) > 9, "some document ends inside a window"
    assert micro.packing.documents.tolist() == numbers.tolist()
    assert micro.packing.boundaries.tolist() == offsets
    longest = max(end - start for start, end in itertools.pairwise(offsets))
    assert longest <= micro.packing.longest < min(2 * longest, 481)
    if phase == 0:
        wanted = next_token(windows, made.vocabulary, isolate=True)
        assert micro.positions.tolist() == wanted.positions.tolist()
        assert step.targets < 8 * 479


@pytest.fixture(scope="module")
def evaluated(tmp_path_factory: pytest.TempPathFactory, small: list[str]) -> Path:
    """A run whose held-out windows are no multiple of what one forward pass takes."""
    out = tmp_path_factory.mktemp("batches") / "reference"
    return train(out, [*small, "corpus.held_out=0.1", "batch.micro=2", "logging.evaluate=1536"]).out


def test_validation_losses_are_means_over_all_held_out_windows(
    evaluated: Path, small: list[str]
) -> None:
    _, tokenizer, corpus = begin([*small, "corpus.held_out=0.1"])
    count = len(corpus.held_out)
    assert count > 4
    assert count % 2 == 1, "the last forward pass takes one window"
    windows = corpus.held_out.read(np.arange(count))
    detour, decay = read_ledger(evaluated).phases
    ids = torch.from_numpy(windows)
    module = Trainee(load_model(evaluated / "phases" / "detour").eval())
    with torch.no_grad():
        logits = module.logits(ids, causal=True)
    plain = F.cross_entropy(logits[:, :-1].flatten(0, 1), ids[:, 1:].flatten())
    assert detour.validation_loss == pytest.approx(float(plain), abs=1e-5)

    rule = load_recipe("toy_detour").phases[1].masking
    made = masked(
        windows, vocabulary_of(tokenizer, 500), rule, [("held out", i) for i in range(count)]
    )
    labels = torch.full((windows.size,), -100)
    labels[made.positions] = torch.from_numpy(made.targets)
    model = AutoModelForMaskedLM.from_pretrained(evaluated / "model").eval()
    with torch.no_grad():
        scores = model(input_ids=torch.from_numpy(made.inputs)).logits
    assert decay.validation_loss == pytest.approx(
        float(F.cross_entropy(scores.flatten(0, 1), labels)), abs=1e-5
    )

    lines = [x for x in read_metrics(evaluated / "metrics.jsonl") if x["event"] == "evaluation"]
    # every 1536 tokens are 4 steps; at a phase's end once
    assert [line["step"] for line in lines] == [4, 8, 12, 4, 8]
    assert [line["targets"] for line in lines[2:4]] == [count * 47, made.positions.size]
    assert lines[-1]["loss"] == decay.validation_loss


def test_the_training_seed_enters_by_masks_and_dropout_alone(
    small: list[str], tmp_path: Path
) -> None:
    short = ["phases.0.tokens=1152", "phases.1.tokens=768"]  # 3 and 2 steps

    def run(name: str, *more: str) -> list[float]:
        return curve(train(tmp_path / name, [*small, *short, *more]).out)

    plain, other = run("plain"), run("other", "seeds.training=18")
    assert plain[:3] == other[:3], "a causal phase without dropout has no chance in it"
    assert plain[3] != other[3]
    dropped = run("dropped", "engine.dropout=0.2")
    other_dropped = run("other dropped", "engine.dropout=0.2", "seeds.training=18")
    assert len({plain[0], dropped[0], other_dropped[0]}) == 3
    diff = api.ledger_diff(tmp_path / "plain", tmp_path / "other dropped")
    assert [r.name for r in diff.differing] == ["dropout"]
