"""A stand-in for the low-level bindings of llama.cpp that records what it is told."""

import sys
from types import SimpleNamespace

from tokenizers import Tokenizer, models, pre_tokenizers

from setscore.backbones import llama_cpp
from setscore.backbones.shelf import SHELF

WORDS = [
    "<unk>",
    "yes",
    "no",
    "oil",
    "rain",
    "Document",
    ":",
    "<|mask|>",
    "Answer",
    "Question",
    "Does",
    "this",
    "express",
]
MASK = 7


class Library:
    """Logits are the sum of the prompt's tokens times the token asked for, plus the place that is read."""

    def __init__(self, architecture="dream"):
        self.architecture, self.causal, self.batches_freed, self.prompts = architecture, True, 0, []
        self.opened, self.freed, self.mask = [], [], str(MASK)

    def llama_backend_init(self): ...
    def llama_model_default_params(self): ...
    def llama_model_load_from_file(self, path, _):
        self.opened.append(path.decode())
        return None if b"broken" in path else f"model of {path.decode()}"

    def llama_free(self, context):
        self.freed.append(context)

    def llama_model_free(self, model):
        self.freed.append(model)

    def llama_model_get_vocab(self, model):
        return model

    def llama_vocab_n_tokens(self, vocab):
        return len(WORDS)

    def llama_context_default_params(self):
        return SimpleNamespace()

    def llama_init_from_model(self, model, params):
        assert params.n_ubatch == params.n_ctx
        return f"context of the {model}"

    def llama_set_causal_attn(self, context, causal):
        self.causal = causal

    def llama_set_n_threads(self, context, threads, batch):
        self.threads = threads

    def llama_model_meta_val_str(self, model, key, buffer, size):
        found = {b"general.architecture": self.architecture, b"tokenizer.ggml.mask_token_id": self.mask}.get(key)
        if found is None:
            return -1
        buffer.value = found.encode()
        return len(found)

    def llama_get_memory(self, context): ...
    def llama_memory_clear(self, memory, data): ...

    def llama_batch_init(self, tokens, embeddings, sequences):
        numbers = [0] * tokens
        lists = {name: list(numbers) for name in ("token", "pos", "n_seq_id", "logits")}
        return SimpleNamespace(n_tokens=0, seq_id=[[0] for _ in numbers], **lists)

    def llama_batch_free(self, batch):
        self.batches_freed += 1

    def llama_log_callback(self, function):
        return function

    def llama_log_set(self, function, data):
        function(4, b"something went wrong\n", data)

    def llama_model_size(self, model):
        return 5_000_000_000

    def llama_model_n_params(self, model):
        return 8_000_000_000

    def llama_model_desc(self, model, buffer, size):
        buffer.value = b"dream 7B Q4_K - Medium"

    def llama_encode(self, context, batch):
        assert not self.causal
        assert all(batch.logits)
        assert batch.pos == list(range(batch.n_tokens))
        self.prompts.append(batch)
        return 0

    def llama_get_logits_ith(self, context, place):
        assert self.prompts[-1].logits[place]
        return [float(number * sum(self.prompts[-1].token) + place * number) for number in range(len(WORDS))]


def made_file(tmp_path, monkeypatch):
    """A .gguf file with its tokenizer, and the library that will be asked to read it."""
    library = Library()
    monkeypatch.setitem(sys.modules, "llama_cpp", library)
    SHELF.clear()
    llama_cpp._log.cache_clear()
    made = Tokenizer(models.WordLevel({word: i for i, word in enumerate(WORDS)}, unk_token="<unk>"))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    made.add_special_tokens(["<|mask|>"])
    made.save(str(tmp_path / "tokenizer.json"))
    path = tmp_path / "dream.gguf"
    path.write_bytes(b"GGUF")
    return SimpleNamespace(name=str(path), library=library)
