"""The docstring of `biobench.models`, line by line: what is taken from a checkpoint as people
publish it, and who is believed.
"""

from __future__ import annotations

import json
import re
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers as hf
from tokenizers import Tokenizer, normalizers

import biobench
from biobench.core import tokenizer as reading_of
from biobench.core.configs import position_limit
from biobench.core.tokenizer import FILE, load_tokenizer, read_tokenizer
from biobench.data.catalog import load_task
from biobench.errors import BioBenchError, ModelError
from biobench.finetune import engine
from biobench.finetune.engine import load_encoder
from biobench.models.loading import Checkpoint, Reading, find_checkpoint
from biobench.models.weights import load_base
from biobench.reporting.frame import build
from biobench.reporting.results import load
from biobench.runs.options import RunRequest
from biobench.runs.plan import make_plan
from biobench.schema.record import RunRecord
from biobench.submission.records import _keys
from tests.helpers import published
from tests.helpers.checkpoints import configure, load_folder, load_on_cpu, make_checkpoint
from tests.helpers.published import ROLES, SMALL, TEXTS, write_tokenizer
from trainer.corpus.shards import tokenizer_hash
from trainer.model.network import load_weights

CPU = torch.device("cpu")

SUBSTITUTED: dict[str, tuple[Any, str, str | None, dict[str, Any] | None]] = {
    "CamemBERTv2": (published.word_pieces, "roberta", "RobertaTokenizer", None),
    "CamemBERTv2, fast": (published.word_pieces, "roberta", "RobertaTokenizerFast", None),
    "CamemBERTav2": (published.word_pieces, "deberta-v2", "DebertaV2Tokenizer", None),
    "no class": (published.unigram, "bert", None, None),
    "no class and no special tokens": (published.unigram, "bert", None, {}),
    "accents stripped in the file alone": (
        lambda: published.byte_pairs(
            normalizers.Sequence([normalizers.NFD(), normalizers.StripAccents()])
        ),
        "roberta",
        "RobertaTokenizer",
        None,
    ),
    "lower-cased in the file alone": (
        lambda: published.byte_pairs(normalizers.Lowercase()),
        "roberta",
        "RobertaTokenizer",
        None,
    ),
    "WordPiece that splits otherwise": (published.word_pieces, "bert", "BertTokenizer", None),
}
"""Tokenizer, model type, the class that is named, and tokenizer_config.json."""


@pytest.fixture(params=SUBSTITUTED)
def substituted(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A folder with such a tokenizer."""
    make, family, named, settings = SUBSTITUTED[request.param]
    return write_tokenizer(tmp_path / "m", make(), family, named=named, settings=settings)


def test_the_tokenizer_file_is_believed_where_the_class_reads_otherwise(substituted: Path) -> None:
    read = read_tokenizer(substituted)
    by_file = Tokenizer.from_file(str(substituted / FILE))
    assert [read.tokenizer(text)["input_ids"] for text in TEXTS] == published.reading(by_file)
    pair = read.tokenizer(TEXTS[0], TEXTS[1])["input_ids"]
    assert pair == by_file.encode(TEXTS[0], TEXTS[1]).ids
    assert read.tokenizer.pad_token_id == 0
    assert read.tokenizer.mask_token_id == 4
    assert (read.maker, read.changes) == (FILE, (FILE,))
    assert [note for note in read.notes if "is read from tokenizer.json itself" in note]


def saved(tokenizer: Any, folder: Path) -> Path:
    """The tokenizer saved beside `folder`, with that folder's config."""
    start = folder.with_name("start")
    tokenizer.save_pretrained(start)
    (start / "config.json").write_text((folder / "config.json").read_text())
    return start


def test_a_tokenizer_of_the_file_is_the_same_after_it_was_saved(substituted: Path) -> None:
    """A pretraining run saves it where it starts, and its corpus goes by the hash."""
    tokenizer = load_tokenizer(substituted)
    start = saved(tokenizer, substituted)
    again = read_tokenizer(start)
    assert tokenizer_hash(again.tokenizer) == tokenizer_hash(tokenizer)
    assert again.changes == ()
    plain = hf.AutoTokenizer.from_pretrained(start)
    assert plain(TEXTS)["input_ids"] == tokenizer(TEXTS)["input_ids"]


def test_a_class_that_reads_as_its_file_stays_and_is_named(tmp_path: Path) -> None:
    """So keys and hashes of corpora stay what they were."""
    cased = {**ROLES, "do_lower_case": False, "tokenizer_class": "BertTokenizer"}
    saved = hf.AutoTokenizer.from_pretrained(published.write_vocabulary(tmp_path / "a", cased))
    saved.save_pretrained(tmp_path / "b")
    published.write_json(tmp_path / "b" / "config.json", {"model_type": "bert"})
    read = read_tokenizer(tmp_path / "b")
    assert read[1:] == ("BertTokenizer, equal to tokenizer.json", (), ())
    assert type(read.tokenizer) is type(saved)
    assert tokenizer_hash(read.tokenizer) == tokenizer_hash(saved)


def test_the_shape_of_moderncamembert_is_read_from_its_file(tmp_path: Path) -> None:
    shape = (published.byte_pairs(), "modernbert")
    folder = write_tokenizer(tmp_path / "m", *shape, named="PreTrainedTokenizerFast")
    read = read_tokenizer(folder)
    assert read[1:] == (FILE, (), ())
    by_file = Tokenizer.from_file(str(folder / FILE))
    assert [read.tokenizer(text)["input_ids"] for text in TEXTS] == published.reading(by_file)


PIECES = {"pad_piece": "[PAD]", "bos_piece": "[CLS]", "eos_piece": "[SEP]", "unk_piece": "[UNK]"}
SENTENCEPIECE: dict[str, tuple[str, str, dict[str, Any]]] = {
    "DebertaV2Tokenizer": (
        "spm.model",
        "deberta-v2",
        {"pad_id": 0, "unk_id": 3, "bos_id": 1, "eos_id": 2, **PIECES},
    ),
    "CamembertTokenizer": ("sentencepiece.bpe.model", "camembert", {}),
    "XLMRobertaTokenizer": ("sentencepiece.bpe.model", "xlm-roberta", {}),
    "T5Tokenizer": ("spiece.model", "t5", {"pad_id": 0, "eos_id": 1, "unk_id": 2, "bos_id": -1}),
}


@pytest.mark.parametrize("named", SENTENCEPIECE)
def test_a_sentencepiece_model_alone_is_a_tokenizer(named: str, tmp_path: Path) -> None:
    import sentencepiece

    file, family, options = SENTENCEPIECE[named]
    folder = published.write_sentencepiece(tmp_path / "m", file, family, **options)
    read = read_tokenizer(folder)
    assert read[1:] == (named, (), ())
    pieces = sentencepiece.SentencePieceProcessor(model_file=str(folder / file))
    for text in TEXTS:
        assert read.tokenizer.tokenize(text) == pieces.encode(text, out_type=str)
    again = read_tokenizer(saved(read.tokenizer, folder))
    assert again[1:] == (f"{named}, equal to tokenizer.json", (), ())
    assert tokenizer_hash(again.tokenizer) == tokenizer_hash(read.tokenizer)


@pytest.mark.skipif(find_spec("sacremoses") is not None, reason="sacremoses is installed")
def test_a_package_that_a_tokenizer_needs_is_named(tmp_path: Path) -> None:
    published.write_json(tmp_path / "config.json", {"model_type": "flaubert"})
    published.write_json(tmp_path / "vocab.json", {"<s>": 0, "</s>": 1, "<unk>": 2, "le</w>": 3})
    (tmp_path / "merges.txt").write_text("#version: 0.2\nl e</w> 5\n")
    with pytest.raises(ModelError, match=r"cannot be loaded: .*sacremoses") as caught:
        load_tokenizer(tmp_path)
    assert caught.value.hint.endswith("pip install sacremoses")


@pytest.mark.parametrize(
    ("settings", "letters"),
    [
        (None, ["capital letters", "accents"]),
        ({"do_lower_case": False}, []),
        ({"do_lower_case": False, "strip_accents": True}, ["accents"]),
    ],
)
def test_a_cased_vocabulary_that_is_read_lower_cased_is_noted(
    settings: dict[str, Any] | None, letters: list[str], tmp_path: Path
) -> None:
    """BioBERT as published has a `vocab.txt` and no tokenizer_config.json."""
    read = read_tokenizer(published.write_vocabulary(tmp_path / "m", settings))
    assert read.maker == "BertTokenizer"
    assert len(read.notes) == len(letters)
    for note, letter in zip(read.notes, letters, strict=True):
        assert f"entries of its vocabulary with {letter}" in note
        assert "into tokenizer_config.json" in note


def test_an_uncased_vocabulary_is_not_noted(tmp_path: Path) -> None:
    folder = make_checkpoint("bert", tmp_path / "m")
    assert read_tokenizer(folder).notes == ()


@pytest.mark.parametrize("named", ["PreTrainedTokenizerFast", "RobertaTokenizer"])
def test_bpe_dropout_is_switched_off(named: str, tmp_path: Path) -> None:
    saved = (published.byte_pairs(dropout=0.5), "roberta")
    read = read_tokenizer(write_tokenizer(tmp_path / "m", *saved, named=named))
    same = published.byte_pairs()
    for _ in range(20):
        assert [read.tokenizer(t)["input_ids"] for t in TEXTS] == published.reading(same)
    assert any("BPE dropout of tokenizer.json is switched off" in note for note in read.notes)
    assert read.changes


def test_a_tokenizer_that_draws_its_tokens_all_the_same_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved = (published.byte_pairs(dropout=0.5), "modernbert")
    folder = write_tokenizer(tmp_path / "m", *saved, named="PreTrainedTokenizerFast")
    monkeypatch.setattr(reading_of, "_switch_off_dropout", lambda _: False)
    with pytest.raises(ModelError, match="gives one text other tokens each time"):
        load_tokenizer(folder)


@pytest.mark.parametrize("named", ["PreTrainedTokenizerFast", "BertTokenizer"])
def test_a_tokenizer_without_its_token_for_unknown_words_is_refused(
    named: str, tmp_path: Path
) -> None:
    folder = write_tokenizer(tmp_path / "m", published.word_pieces(), "bert", named=named)
    content = json.loads((folder / FILE).read_text(encoding="utf-8"))
    content["model"]["unk_token"] = "<unk>"
    published.write_json(folder / FILE, content)
    with pytest.raises(ModelError, match="cannot read every text: WordPiece error") as caught:
        load_tokenizer(folder)
    assert caught.value.file == str(folder)


def run_once(folder: Path, task: str, results: Path) -> Any:
    """The result of one short run."""
    (result,) = biobench.run(
        str(folder),
        tasks=task,
        seeds="42",
        limit=12,
        overrides=("training.epochs=1",),
        results_dir=str(results),
        gate=False,
    )
    return result


def test_runs_records_reports_and_keys_say_how_a_checkpoint_was_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    folder = make_checkpoint("bert", tmp_path / "some-encoder")
    write_tokenizer(folder, published.word_pieces(), "bert", named="BertTokenizer")
    request = RunRequest(model=(str(folder),), tasks=("demo_ner",), limit=12, seeds=(42,))
    plan = make_plan(request)
    (line,) = plan.remarks()
    assert line.startswith("note: some-encoder: the tokenizer is read from tokenizer.json itself")
    with monkeypatch.context() as patch:
        patch.setattr(Checkpoint, "reading", Reading("BertTokenizer"))
        (unmarked,) = make_plan(request).items
    assert plan.items[0].key != unmarked.key

    result = run_once(folder, "demo_ner", tmp_path)
    assert result.status == "done", result.reason
    assert line in caplog.messages, "who calls from Python reads it too"
    record = json.loads(Path(result.predictions).with_suffix(".json").read_text(encoding="utf-8"))
    assert record["model"]["tokenizer"] == FILE
    assert record["model"]["changes"] == [FILE]
    assert record["key"] in _keys(RunRecord.model_validate(record)), "as a submission is checked"
    assert record["model"]["notes"] == [line.removeprefix("note: some-encoder: ")]
    notes = build(load(tmp_path), "macro").notes
    assert line.removeprefix("note: ") in notes


BUFFER = "1.0 / 10_000 ** (torch.arange(half) / half)"


def test_buffers_that_no_file_holds_are_those_of_the_model_s_own_code(tmp_path: Path) -> None:
    checkpoint = find_checkpoint(
        str(published.write_own_code(tmp_path / "own", BUFFER)), trust_remote_code=True
    )
    model = load_base(checkpoint, torch.float32)
    torch.testing.assert_close(model.inv_freq, 1.0 / 10_000 ** (torch.arange(16) / 16))
    encoder = load_encoder(checkpoint, CPU).encoder
    assert (encoder.attention, encoder.first_token_reads_far) == ("padded", True)
    assert checkpoint.reading is not None
    assert checkpoint.reading.changes == ("buffers",)


def test_a_buffer_that_is_drawn_at_random_is_refused_by_name(tmp_path: Path) -> None:
    folder = published.write_own_code(tmp_path / "own", "torch.rand(half)")
    with pytest.raises(ModelError, match="the buffer 'inv_freq' is in no file"):
        load_folder(folder, trusted=True)


def own_code(folder: Path, before: str, after: str) -> Path:
    """The checkpoint with its own code, in which `after` stands for `before`."""
    file = published.write_own_code(folder, BUFFER) / "own_model.py"
    code = file.read_text(encoding="utf-8")
    assert before in code
    file.write_text(code.replace(before, after), encoding="utf-8")
    return folder


def test_a_model_of_own_code_may_give_a_tuple(tmp_path: Path) -> None:
    """As MosaicBERT and DNABERT-2 do."""
    named_states = "BaseModelOutput(last_hidden_state=self.mix(states + mean))"
    folders = (
        published.write_own_code(tmp_path / "named", BUFFER),
        own_code(tmp_path / "tuple", named_states, "(self.mix(states + mean), None)"),
    )
    named, plain = (load_on_cpu(folder, trusted=True) for folder in folders)
    ids = named.vocabulary[:20]
    with torch.no_grad():
        torch.testing.assert_close(plain([ids]), named([ids]), atol=0, rtol=0)


@pytest.mark.parametrize("window", [8, 64, 300])
def test_a_local_window_of_own_code_is_found_whatever_its_name(window: int, tmp_path: Path) -> None:
    mean = "mean = (states * real[..., None]).sum(1, keepdim=True) / real.sum(1)[:, None, None]"
    near = f"near = torch.ones(2 * [states.shape[1]]).tril({window}).triu(-{window})"
    local = f"{near}\n        mean = (near * real[:, None]) @ states / {window}"
    folder = own_code(tmp_path / "own", mean, local)
    checkpoint = find_checkpoint(str(folder), trust_remote_code=True)
    encoder = load_encoder(checkpoint, CPU).encoder
    assert encoder.first_token_reads
    assert not encoder.first_token_reads_far


def longformer(folder: Path) -> Path:
    config = hf.LongformerConfig(**SMALL, max_position_embeddings=80, attention_window=[8, 8])
    return published.write_model(folder, config)


def test_longformer_s_first_token_sees_the_whole_text_where_a_head_reads_it(
    tmp_path: Path,
) -> None:
    encoder = load_on_cpu(longformer(tmp_path / "m"))
    assert not encoder.first_token_reads_far
    ids = encoder.vocabulary[torch.arange(40).numpy() % len(encoder.vocabulary)]
    row = torch.from_numpy(ids)[None]
    first = torch.zeros_like(row)
    first[:, 0] = 1
    reference = hf.AutoModel.from_pretrained(tmp_path / "m").eval()
    with torch.no_grad():
        local = encoder([ids])
        encoder.read_first_token(True)
        assert encoder.first_token_reads_far
        whole = encoder([ids])
        theirs = reference(input_ids=row, global_attention_mask=first).last_hidden_state[0]
        torch.testing.assert_close(whole, theirs, atol=2e-5, rtol=1e-4)
        encoder.read_first_token(False)
        torch.testing.assert_close(encoder([ids]), local, atol=0, rtol=0)
    assert (whole[0] - local[0]).abs().max() > 1e-3


@pytest.mark.parametrize(
    ("task", "overrides", "marked"),
    [
        ("demo_ner", (), False),
        ("demo_topic", ("head.pooling=cls",), True),
        ("demo_topic", (), False),
    ],
)
def test_only_runs_whose_head_reads_the_first_token_get_another_key(
    task: str, overrides: tuple[str, ...], marked: bool, tmp_path: Path
) -> None:
    folder = longformer(tmp_path / "m")
    request = RunRequest(model=(str(folder),), tasks=(task,), limit=12, overrides=overrides)
    with pytest.MonkeyPatch.context() as patch:
        plain = make_plan(request).items[0].key
        patch.setattr(Checkpoint, "takes_global_attention", False)
        assert (make_plan(request).items[0].key != plain) == marked


def test_a_first_token_that_sees_its_local_window_only_stands_for_no_text(tmp_path: Path) -> None:
    encoder = load_on_cpu(longformer(tmp_path / "m"))
    assert encoder.first_token_reads
    with pytest.raises(ModelError, match="first token sees its local window only") as caught:
        engine._check_pooling(encoder, load_task("demo_topic", ("head.pooling=cls",)).spec)
    assert "head.pooling=mean" in caught.value.hint
    engine._check_pooling(encoder, load_task("demo_ner").spec)


@pytest.mark.parametrize("pad", [0, 1, 3])
def test_positions_begin_after_the_padding_id_on_both_sides(pad: int, tmp_path: Path) -> None:
    from trainer.model.families import check_windows

    config = hf.RobertaConfig(**{**SMALL, "pad_token_id": pad}, max_position_embeddings=40)
    assert position_limit(config) == 40 - pad - 1
    model = hf.RobertaModel(config).eval()
    with torch.no_grad():
        model(input_ids=torch.full((1, 40 - pad - 1), 7))
        with pytest.raises((IndexError, RuntimeError)):
            model(input_ids=torch.full((1, 40 - pad), 7))
    check_windows(model, 40 - pad - 1)
    with pytest.raises(ModelError, match=f"longer than the model's {40 - pad - 1} positions"):
        check_windows(model, 40 - pad)
    encoder = engine.Encoder(model, pad)
    assert (encoder.attention, encoder.position_offset) == ("packed", pad + 1)


@pytest.mark.parametrize("pad", [0, 3])
@pytest.mark.parametrize("family", ["MPNet", "MarkupLM", "LayoutLMv3", "Luke", "IBert", "Esm"])
def test_positions_of_other_families_are_those_that_the_library_counts(
    family: str, pad: int
) -> None:
    sizes = {**SMALL, "pad_token_id": pad, "max_position_embeddings": 40}
    layout = {"coordinate_size": 4, "shape_size": 8, "visual_embed": False}
    config = getattr(hf, f"{family}Config")(**sizes, **layout)
    limit = position_limit(config)
    model = hf.AutoModel.from_config(config).eval()
    with torch.no_grad():
        model(input_ids=torch.full((1, limit), 7))
        with pytest.raises((IndexError, RuntimeError)):
            model(input_ids=torch.full((1, limit + 1), 7))


def test_a_config_without_vocabulary_size_runs(tmp_path: Path) -> None:
    """CANINE reads characters; code of one's own may call it anything."""
    hashes = {"num_hash_functions": 4, "num_hash_buckets": 64}
    sizes = {name: size for name, size in SMALL.items() if name != "vocab_size"}
    config = hf.CanineConfig(**sizes, **hashes, max_position_embeddings=256)
    folder = published.write_model(tmp_path / "m", config)
    for file in folder.glob("tokenizer*"):
        file.unlink()
    hf.CanineTokenizer().save_pretrained(folder)
    result = run_once(folder, "demo_topic", tmp_path)
    assert result.status == "done", result.reason


def test_an_error_inside_the_library_is_said_to_be_its_own(tmp_path: Path) -> None:
    """Reformer trains on windows of one length only."""
    axes = {"axial_pos_shape": [16, 16], "axial_pos_embds_dim": [16, 16], "num_buckets": 2}
    config = hf.ReformerConfig(
        vocab_size=500,
        hidden_size=32,
        num_attention_heads=2,
        attention_head_size=16,
        feed_forward_size=32,
        max_position_embeddings=256,
        is_decoder=False,
        attn_layers=["local", "lsh"],
        **axes,
    )
    folder = published.write_model(tmp_path / "m", config)
    result = run_once(folder, "demo_ner", tmp_path)
    assert result.status == "failed"
    version = re.escape(hf.__version__)
    assert re.match(f"transformers {version} itself cannot run this model: ", result.reason or "")
    assert "\n" not in (result.reason or "")


def test_settings_that_the_engine_brings_itself_are_ignored(tmp_path: Path) -> None:
    folder = make_checkpoint("bert", tmp_path / "m")
    plain = load_on_cpu(folder)
    configure(
        folder,
        _attn_implementation="flash_attention_2",
        return_dict=False,
        output_hidden_states=True,
    )
    checkpoint = find_checkpoint(str(folder))
    encoder = load_encoder(checkpoint, CPU).encoder.eval()
    ids = plain.vocabulary[:20]
    with torch.no_grad():
        torch.testing.assert_close(encoder([ids]), plain([ids]), atol=0, rtol=0)
    assert encoder.attention == plain.attention == "packed"
    assert checkpoint.reading is not None
    (note,) = checkpoint.reading.notes
    assert "flash_attention_2, is not used" in note
    assert load_weights(hf.AutoModel, folder).config._attn_implementation == "sdpa"
    assert checkpoint.reading.changes == ()


def test_hints_lead_from_other_layouts_to_the_checkpoint(tmp_path: Path) -> None:
    from trainer.model.network import read_config

    adapter, bert = tmp_path / "adapter", make_checkpoint("bert", tmp_path / "bert")
    adapter.mkdir()
    published.write_json(
        adapter / "adapter_config.json",
        {"base_model_name_or_path": "org/base", "peft_type": "LORA"},
    )
    sentences = tmp_path / "sentences"
    bert.rename(sentences.with_name("0_Transformer"))
    sentences.mkdir()
    sentences.with_name("0_Transformer").rename(sentences / "0_Transformer")
    (sentences / "1_Pooling").mkdir()
    published.write_json(sentences / "1_Pooling" / "config.json", {"pooling_mode_cls_token": True})
    hints = {adapter: "PeftModel.from_pretrained(AutoModel.from_pretrained('org/base')"}
    hints[sentences] = f"give {sentences / '0_Transformer'}"
    for folder, words in hints.items():
        for open_ in (lambda f: find_checkpoint(str(f)), read_config, load_tokenizer):
            with pytest.raises(ModelError) as caught:
                open_(folder)
            assert words in caught.value.hint


def test_a_learning_rate_beyond_all_sense_is_refused_in_one_line() -> None:
    request = RunRequest(
        model=("dummy",), tasks=("demo_ner",), overrides=("training.learning_rate=1e30",)
    )
    with pytest.raises(BioBenchError, match="learning_rate: input should be less than or equal"):
        make_plan(request)


@pytest.mark.skipif(not hasattr(hf, "UltrabertConfig"), reason="transformers before 5.24")
def test_ultrabert_is_packed_and_pretrained_with_its_inclusive_radius(tmp_path: Path) -> None:
    from trainer.model.attention import Reach
    from trainer.model.guard import check
    from trainer.model.network import Trainee, build_model

    kinds = ["full_attention", "sliding_attention"]
    local = {"sliding_window": 4, "layer_types": kinds, "prediction_head_size": 16}
    config = hf.UltrabertConfig(**SMALL, **local, max_position_embeddings=128)
    folder = published.write_model(tmp_path / "m", config)
    encoder = load_on_cpu(folder)
    assert encoder.attention == "packed"
    model = build_model(config)
    trainee = Trainee(model)
    report = check(model, lambda ids: trainee.hidden(ids, causal=False), causal=False)
    assert report.reaches["sliding_attention"] == Reach(4, 4)
    report = check(model, lambda ids: trainee.hidden(ids, causal=True), causal=True)
    assert report.reaches["sliding_attention"] == Reach(4, 0)
    ids = torch.arange(20)[None]
    with torch.no_grad():
        logits = trainee.logits(ids, causal=False)
        model.set_attn_implementation("sdpa")
        torch.testing.assert_close(logits, model(ids).logits, atol=1e-4, rtol=1e-3)
