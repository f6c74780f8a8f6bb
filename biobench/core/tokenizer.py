"""Loading a checkpoint's tokenizer."""

from __future__ import annotations

from pathlib import Path

from tokenizers import Tokenizer
from transformers import AutoTokenizer, PreTrainedTokenizerBase

from biobench.core.checkpoint_safety import check_tokenizer
from biobench.core.files import broken_file
from biobench.core.text import first_line
from biobench.errors import ModelError

_SENTENCE = (
    "The patient had 12 mg of aspirin; la fièvre a duré 3 jours. "
    "the patient was treated for a disease of the heart; le patient a une maladie"
)
"""Any tokenizer that was trained on text knows a piece of it."""


def load_tokenizer(
    source: str | Path, *, revision: str | None = None, trust_remote_code: bool = False
) -> PreTrainedTokenizerBase:
    """The tokenizer of a checkpoint (hub id or folder). Raises ModelError where there is none.

    Without the tokenizer's files the library makes an empty one, to which every word is unknown.
    """
    folder = Path(source) if Path(source).is_dir() else None
    whose = "the tokenizer" if folder else f"the tokenizer of '{source}'"
    hint = "the folder must hold the tokenizer's files (tokenizer.json or the vocabulary)"
    if folder:
        check_tokenizer(folder)
    try:
        tokenizer: PreTrainedTokenizerBase = AutoTokenizer.from_pretrained(
            str(source), revision=revision, trust_remote_code=trust_remote_code
        )
    except Exception as error:  # a tokenizer.json that is not whole raises a bare Exception
        broken = folder and broken_file(
            folder, "tokenizer.json", lambda path: Tokenizer.from_file(str(path))
        )
        if broken:
            hint = "copy or download the file again, or save the tokenizer again"
        raise ModelError(
            f"{whose} cannot be loaded: {first_line(error, 200)}", hint=hint, file=broken or folder
        ) from error
    if set(tokenizer(_SENTENCE, add_special_tokens=False)["input_ids"]) <= set(
        tokenizer.all_special_ids
    ):
        raise ModelError(f"{whose} knows no word of a plain sentence", hint=hint, file=folder)
    return tokenizer
