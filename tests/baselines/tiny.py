"""Small random checkpoints in the true format: config, safetensors and tokenizer files, as the Hub has them."""

import re

import checkpoints

SPECIALS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "<s>", "</s>"]
WORDS = SPECIALS + re.findall(
    r"\S+",
    "yes no oil match song and the a is of about text this example topic rain none ; , . : ? document question answer"
    " does express which these labels apply to with alone separated by commas or in very good bad",
)


def tokenizer(folder, *, end=None):
    """Words as tokens, in lower case; a pair is [CLS] a [SEP] b [SEP]."""
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    number = {word: place for place, word in enumerate(WORDS)}
    made = Tokenizer(models.WordLevel(number, unk_token="[UNK]"))
    made.normalizer, made.pre_tokenizer = normalizers.Lowercase(), pre_tokenizers.Whitespace()
    made.decoder = decoders.Fuse()
    made.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    if end is not None:
        made.decoder = None
        made.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 6)])
    fast = PreTrainedTokenizerFast(
        tokenizer_object=made, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]",
        mask_token="[MASK]", eos_token="</s>", bos_token="<s>",
    )  # fmt: skip
    fast.save_pretrained(folder)
    return folder


def save(model, folder):
    model.save_pretrained(folder)
    return folder


def nli(folder, names=("contradiction", "neutral", "entailment"), kind="deberta"):
    import torch
    from transformers import (
        BartConfig,
        BartForSequenceClassification,
        DebertaV2Config,
        DebertaV2ForSequenceClassification,
    )

    torch.manual_seed(3)
    labels = {"id2label": dict(enumerate(names)), "label2id": {name: place for place, name in enumerate(names)}}
    if kind == "bart":
        config = BartConfig(
            vocab_size=64, d_model=16, encoder_layers=1, decoder_layers=1, encoder_attention_heads=2,
            decoder_attention_heads=2, encoder_ffn_dim=16, decoder_ffn_dim=16, max_position_embeddings=600,
            pad_token_id=0, bos_token_id=2, eos_token_id=3, decoder_start_token_id=3, num_labels=3, **labels,
        )  # fmt: skip
        made = BartForSequenceClassification(config)
    else:
        config = DebertaV2Config(
            vocab_size=64, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16,
            max_position_embeddings=600, pad_token_id=0, num_labels=3, **labels,
        )  # fmt: skip
        made = DebertaV2ForSequenceClassification(config)
    return save(made, tokenizer(folder))


def causal(folder):
    import torch
    from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM

    torch.manual_seed(4)
    config = Qwen2Config(
        vocab_size=400, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, num_key_value_heads=1,
        intermediate_size=16, pad_token_id=0, eos_token_id=1, bos_token_id=1, max_position_embeddings=2048,
    )  # fmt: skip
    made = checkpoints.tokenizer()
    first, second = made.id_to_token(0), made.id_to_token(1)
    PreTrainedTokenizerFast(tokenizer_object=made, pad_token=first, eos_token=second).save_pretrained(folder)
    return save(Qwen2ForCausalLM(config), folder)


def encoder(folder, kind="bert"):
    import torch
    from transformers import BertConfig, BertForMaskedLM, RobertaConfig, RobertaForMaskedLM

    torch.manual_seed(5)
    shape = {
        "vocab_size": 64, "hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2,
        "intermediate_size": 32, "max_position_embeddings": 520, "pad_token_id": 0, "hidden_dropout_prob": 0.05,
        "initializer_range": 0.15,
    }  # fmt: skip
    made = BertForMaskedLM(BertConfig(**shape)) if kind == "bert" else RobertaForMaskedLM(RobertaConfig(**shape))
    return save(made, tokenizer(folder))


def t5(folder):
    import torch
    from transformers import T5Config, T5ForConditionalGeneration

    torch.manual_seed(6)
    config = T5Config(
        vocab_size=64, d_model=32, d_kv=8, d_ff=32, num_layers=1, num_decoder_layers=1, num_heads=4, pad_token_id=0,
        eos_token_id=6, decoder_start_token_id=0, dropout_rate=0.0,
    )  # fmt: skip
    return save(T5ForConditionalGeneration(config), tokenizer(folder, end="</s>"))


def sentence_encoder(folder):
    """A BERT with mean pooling, as sentence-transformers saves one."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.models import Pooling, Transformer

    body = Transformer(encoder(str(folder / "bert")), max_seq_length=64)
    SentenceTransformer(modules=[body, Pooling(32)], device="cpu").save(str(folder / "encoder"))
    return str(folder / "encoder")
