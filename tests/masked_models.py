"""Small random masked language models in the files of their families, each with a real tokenizer of its kind."""

import json
import shutil
from pathlib import Path

CORPUS = [
    "Document:\nCrude prices fell again.\n\nQuestion: Does this document express oil?\nAnswer: yes",
    "Document:\nIt rained all week, and it rained again.\n\nQuestion: Does this document express rain?\nAnswer: no",
    " yes no yes no oil rain prices fell again document question answer",
] * 8
KINDS = ("bert", "roberta", "deberta-v2", "modernbert")
SIZES = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48}


def write(folder: Path, kind: str, **changes) -> Path:
    """A checkpoint of `kind` in `folder`; `changes` go to its config."""
    import torch
    import transformers

    torch.set_num_threads(1)
    torch.manual_seed(5)
    tokenizer = TOKENIZERS[kind]()
    tokenizer.save_pretrained(folder)
    classes = {"bert": "Bert", "roberta": "Roberta", "deberta-v2": "DebertaV2", "modernbert": "ModernBert"}
    special = {"pad_token_id": tokenizer.pad_token_id, "bos_token_id": tokenizer.cls_token_id}
    special |= {"eos_token_id": tokenizer.sep_token_id, "cls_token_id": tokenizer.cls_token_id}
    settings = SIZES | EXTRA[kind] | special | {"sep_token_id": tokenizer.sep_token_id, "vocab_size": len(tokenizer)}
    config = getattr(transformers, f"{classes[kind]}Config")(initializer_range=0.5, **settings | changes)
    model = getattr(transformers, f"{classes[kind]}ForMaskedLM")(config)
    for parameter in model.parameters():  # some families start with small or zero weights whatever the config says
        if parameter.ndim > 1:
            parameter.data.normal_(std=0.4)
    model.eval().save_pretrained(folder)
    return folder


EXTRA = {
    "bert": {"max_position_embeddings": 128},
    "roberta": {"max_position_embeddings": 130, "type_vocab_size": 1},  # the first two positions are padding's
    "deberta-v2": {
        "max_position_embeddings": 128, "relative_attention": True, "pos_att_type": ["p2c", "c2p"],
        "position_biased_input": False, "type_vocab_size": 0, "position_buckets": 16, "norm_rel_ebd": "layer_norm",
        "share_att_key": True,
    },
    "modernbert": {
        "max_position_embeddings": 128, "global_attn_every_n_layers": 2, "local_attention": 16,
        "attn_implementation": "sdpa",
    },
}  # fmt: skip


def _word_pieces():
    from tokenizers import BertWordPieceTokenizer
    from transformers import BertTokenizer

    made = BertWordPieceTokenizer()
    made.train_from_iterator(CORPUS, vocab_size=120, show_progress=False)
    return BertTokenizer(vocab=made.get_vocab())


def _byte_pairs(specials):
    from tokenizers import ByteLevelBPETokenizer

    made = ByteLevelBPETokenizer(add_prefix_space=False)
    made.train_from_iterator(CORPUS, vocab_size=400, special_tokens=specials, show_progress=False)
    return made


def _roberta():
    from transformers import RobertaTokenizer

    model = json.loads(_byte_pairs(["<s>", "<pad>", "</s>", "<unk>", "<mask>"]).to_str())["model"]
    return RobertaTokenizer(vocab=model["vocab"], merges=[tuple(merge) for merge in model["merges"]])


def _modernbert():
    from tokenizers import Tokenizer, processors
    from transformers import PreTrainedTokenizerFast

    made = Tokenizer.from_str(_byte_pairs(["[UNK]", "[CLS]", "[SEP]", "[PAD]", "[MASK]"]).to_str())
    ends = [("[CLS]", made.token_to_id("[CLS]")), ("[SEP]", made.token_to_id("[SEP]"))]
    made.post_processor = processors.TemplateProcessing(single="[CLS]:0 $A:0 [SEP]:0", special_tokens=ends)
    names = {f"{name}_token": f"[{name.upper()}]" for name in ("unk", "cls", "sep", "pad", "mask")}
    return PreTrainedTokenizerFast(tokenizer_object=made, **names)


def _unigram():
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers
    from transformers import DebertaV2Tokenizer

    made = Tokenizer(models.Unigram())
    made.normalizer = normalizers.Replace("\n", " ")
    made.pre_tokenizer = pre_tokenizers.Metaspace()
    specials = ["[PAD]", "[CLS]", "[SEP]", "[UNK]", "[MASK]"]
    trainer = trainers.UnigramTrainer(vocab_size=90, special_tokens=specials, unk_token="[UNK]", show_progress=False)
    made.train_from_iterator(CORPUS, trainer)
    vocabulary = [tuple(entry) for entry in json.loads(made.to_str())["model"]["vocab"]]
    answers = [(piece, -2.0) for piece in ("▁yes", "▁no")]
    kept = [entry for entry in vocabulary if entry[0] not in ("▁yes", "▁no")]
    return DebertaV2Tokenizer(vocab=kept + answers)


TOKENIZERS = {"bert": _word_pieces, "roberta": _roberta, "deberta-v2": _unigram, "modernbert": _modernbert}

CODE = """
from pathlib import Path

from transformers import BertConfig, BertForMaskedLM

Path(MARK).touch()


class OwnConfig(BertConfig):
    model_type = "own-bert"


class OwnForMaskedLM(BertForMaskedLM):
    config_class = OwnConfig

    def forward(self, *args, **kwargs):
        found = super().forward(*args, **kwargs)
        found.logits = 2 * found.logits
        return found
"""


def own_code(bert: Path, folder: Path, *, model_type: str) -> Path:
    """BERT whose config.json names a module that lies beside it."""
    shutil.copytree(bert, folder)
    config = json.loads((folder / "config.json").read_text())
    config["auto_map"] = {"AutoConfig": "modeling_own.OwnConfig", "AutoModelForMaskedLM": "modeling_own.OwnForMaskedLM"}
    config |= {"model_type": model_type, "architectures": ["OwnForMaskedLM"]}
    (folder / "config.json").write_text(json.dumps(config))
    mark = str(folder.with_name("was_run"))
    (folder / "modeling_own.py").write_text(CODE.replace("MARK", repr(mark)))
    return folder
