"""Small tokenizers of the kinds that models come with, made without torch."""

import functools
import json

from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

CORPUS = [
    "Document:\nCrude prices fell again.\n\nQuestion: Does this document express oil?\nAnswer: yes",
    "Document: It rained all week, and it rained again. Question: Is this about rain? Answer: no",
    "Text: naïve café 2024 (it's 3:15)\nQuestion: Does it concern prices?\nAnswer: yes",
    " yes no yes no oil rain prices fell again document question answer",
] * 8
SPECIALS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
QWEN = r"[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"


def byte_pairs() -> Tokenizer:
    """GPT-2's way: a word carries the space before it."""
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    return _trained_bytes(made)


def qwen() -> Tokenizer:
    """Dream's way: punctuation carries the line ends after it."""
    made = Tokenizer(models.BPE())
    split = pre_tokenizers.Split(Regex(QWEN), behavior="isolated")
    bytes_ = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    made.pre_tokenizer = pre_tokenizers.Sequence([split, bytes_])
    return _trained_bytes(made)


def _trained_bytes(made: Tokenizer) -> Tokenizer:
    made.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=500, special_tokens=SPECIALS, initial_alphabet=alphabet, show_progress=False
    )
    made.train_from_iterator(CORPUS, trainer)
    return made


def word_pieces() -> Tokenizer:
    """BERT's way: white space only parts words."""
    made = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    made.normalizer = normalizers.BertNormalizer()
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    made.decoder = decoders.WordPiece()
    trainer = trainers.WordPieceTrainer(vocab_size=200, special_tokens=SPECIALS, show_progress=False)
    made.train_from_iterator(CORPUS, trainer)
    return made


def unigram() -> Tokenizer:
    """SentencePiece's way: a space becomes part of the word after it, one is added at the front, and the special
    tokens stand in the vocabulary among all others."""
    made = Tokenizer(models.Unigram())
    made.normalizer = normalizers.Replace("\n", " ")
    made.pre_tokenizer = pre_tokenizers.Metaspace()
    made.decoder = decoders.Metaspace()
    trainer = trainers.UnigramTrainer(vocab_size=150, special_tokens=SPECIALS, unk_token="[UNK]", show_progress=False)
    made.train_from_iterator(CORPUS, trainer)
    return _with_answers(made)


def _with_answers(made: Tokenizer) -> Tokenizer:
    """The same with the answers as one piece each."""
    content = json.loads(made.to_str())
    pieces = [entry for entry in content["model"]["vocab"] if entry[0] not in ("▁yes", "▁no")]
    content["model"]["vocab"] = [*pieces, ["▁yes", -2.0], ["▁no", -2.0]]
    return Tokenizer.from_str(json.dumps(content))


KINDS = {"byte_pairs": byte_pairs, "qwen": qwen, "word_pieces": word_pieces, "unigram": unigram}


@functools.cache
def _trained(kind: str) -> str:
    return KINDS[kind]().to_str()  # training breaks ties as it likes, so no kind is trained twice


def tokenizer(kind: str) -> Tokenizer:
    return Tokenizer.from_str(_trained(kind))
