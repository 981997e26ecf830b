"""The tutor: its layers are those of Qwen2, questions do not see each other, and it learns what it is shown."""

import argparse
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
import yaml
from safetensors.torch import save_file
from tokenizers import Tokenizer
from torch import Tensor

from recipes import HERE
from recipes.batches import pack as packed_rows
from recipes.card import tutored
from recipes.kinds import Example, Examples
from recipes.model import Mini
from recipes.model import Shape as SmallShape
from recipes.prepare import assemble
from recipes.questions import Cosines
from recipes.run import TOKENIZER
from recipes.sources.rows import Row
from recipes.store import Ragged, Store
from recipes.tutor import learn, near, pool, tokens, weights
from recipes.tutor.corrections import correct, save, to_learn
from recipes.tutor.pool import Pool
from recipes.tutor.rows import batches
from recipes.tutor.tokens import Questions
from recipes.tutor.weights import pack
from recipes.tutored import Tutored
from recipes.vocabulary import Vocabulary
from setscore.backbones.causal.model import CausalModel, Shape, build
from setscore.backbones.causal.weights import corrected, unpack
from setscore.errors import BackboneError
from tests.small_gguf import HEADS, INNER, LAYERS, SHARED, WIDTH, made

pytest.importorskip("gguf")
TOKENS = 40
SMALL = SmallShape(layers=1, width=32, heads=1, inner=64)
CONFIG = yaml.safe_load((HERE / "config.yaml").read_text())


def tutor_of(seed: int) -> CausalModel:
    torch.manual_seed(seed)
    return CausalModel(Shape(LAYERS, WIDTH, HEADS, SHARED, INNER, TOKENS))


def questions(generator: np.random.Generator, examples: int) -> Questions:
    """Documents that hold token 7 or do not; each question asks about token 7 or token 8."""
    texts, document, asked, answers = [[1, 7], [1, 8]], [], [], []
    for _ in range(examples):
        words = generator.integers(10, TOKENS, generator.integers(3, 9)).tolist()
        held = [bool(generator.random() < 0.5) for _ in (7, 8)]
        words += [token for token, there in zip((7, 8), held, strict=True) if there]
        document.append(len(texts))
        texts.append(generator.permutation(words).tolist())
        asked.append([0, 1])
        answers += [float(there) for there in held]
    return Questions(Ragged.of(texts), np.array(document), Ragged.of(asked), np.array(answers, dtype=np.float16))


def alone(tutor: CausalModel, text: list[int], question: list[int]) -> float:
    """One question behind one text, in a row of its own."""
    cells = torch.tensor([text + question])
    segments = torch.tensor([[1] * len(text) + [2] * len(question)])
    slots = torch.tensor([[0, cells.shape[1] - 1]])
    with torch.no_grad():
        return float(tutor(cells, torch.arange(cells.shape[1])[None], torch.ones_like(cells), segments, slots))


def test_its_layers_are_those_of_qwen2() -> None:
    transformers = pytest.importorskip("transformers")
    tutor = tutor_of(1)
    config = transformers.Qwen2Config(
        vocab_size=TOKENS, hidden_size=WIDTH, intermediate_size=INNER, num_hidden_layers=LAYERS,
        num_attention_heads=HEADS, num_key_value_heads=SHARED, rope_theta=1e6, rms_norm_eps=1e-6,
        rope_parameters={"rope_type": "default", "rope_theta": 1e6},
    )  # fmt: skip
    theirs = transformers.Qwen2Model(config).eval()
    state: dict[str, Tensor] = {"embed_tokens.weight": tutor.word.weight, "norm.weight": tutor.norm.weight}
    names = {"n1": "input_layernorm", "n2": "post_attention_layernorm", "o": "self_attn.o_proj"}
    names |= {"gate": "mlp.gate_proj", "up": "mlp.up_proj", "down": "mlp.down_proj"}
    size = WIDTH // HEADS
    for number, layer in enumerate(tutor.layers):
        state |= {f"layers.{number}.{b}.weight": getattr(layer, a).weight for a, b in names.items()}
        for part in ("weight", "bias"):
            pieces = getattr(layer.qkv, part).split([WIDTH, SHARED * size, SHARED * size])
            for each, piece in zip("qkv", pieces, strict=True):
                state[f"layers.{number}.self_attn.{each}_proj.{part}"] = piece
    theirs.load_state_dict(state)
    text, question = list(range(10, 22)), [3, 4, 5]
    hidden = theirs(torch.tensor([text + question])).last_hidden_state[0, -1]
    assert alone(tutor, text, question) == pytest.approx(float(tutor.head(hidden).detach()), abs=1e-4)


def test_a_question_is_answered_as_if_it_stood_alone() -> None:
    generator, tutor = np.random.default_rng(2), tutor_of(2)
    asked = questions(generator, 9)
    odds = np.full(len(asked.answers), np.nan)
    for batch in batches(asked, range(9), rows=2, columns=32):
        odds[batch.numbers] = learn.ask(tutor, batch).detach().numpy()
    for example in range(9):
        text = asked.texts[asked.document[example]].tolist()
        for number, question in enumerate(asked.questions[example]):
            expected = alone(tutor, text, asked.texts[question].tolist())
            assert odds[asked.questions.offsets[example] + number] == pytest.approx(expected, abs=1e-4)


def test_every_example_stands_in_one_row_whole() -> None:
    asked = questions(np.random.default_rng(3), 50)
    found = np.concatenate([batch.numbers for batch in batches(asked, range(50), rows=3, columns=64)])
    assert sorted(found.tolist()) == list(range(100))
    long = Questions(Ragged.of([[1] * 7, [2] * 3]), np.zeros(1, dtype=int), Ragged.of([[1]]), np.zeros(1))
    with pytest.raises(ValueError, match="have 10 tokens, and a row 6"):
        list(batches(long, [0], rows=1, columns=6))


def test_many_questions_about_one_text_are_answered_as_few_are() -> None:
    """More than a row holds, and more than are told apart in one."""
    generator, tutor = np.random.default_rng(5), tutor_of(5)
    texts = Ragged.of([generator.integers(10, TOKENS, 12).tolist(), *([5, n] for n in range(10, 40))])
    numbers = [n for _ in range(4) for n in range(1, 31)]
    asked = Questions(texts, np.zeros(1, dtype=int), Ragged.of([numbers]), np.zeros(120, dtype=np.float16))
    wide, narrow = (learn.answer(tutor, asked, 2, columns) for columns in (512, 32))
    np.testing.assert_allclose(wide, narrow, atol=1e-4)
    np.testing.assert_allclose(wide, np.tile(wide[:30], 4), atol=1e-4)
    assert len(set(wide[:30].round(3).tolist())) > 20


def test_it_learns_and_answers(tmp_path: Path) -> None:
    tutor = correct(tutor_of(4))
    known, fresh = questions(np.random.default_rng(4), 3000), questions(np.random.default_rng(5), 200)
    arguments = argparse.Namespace(seed=1, rows=8, columns=64, rate=2e-3, minutes=5, device="cpu")
    learn.learn(tutor, known, arguments)
    odds = learn.answer(tutor, fresh, 8, 64)
    assert ((odds > 0) == (fresh.answers > 0.5)).mean() > 0.9
    untouched = dict(tutor_of(4).state_dict())
    for name, value in tutor.state_dict().items():
        plain = name.replace(".linear.", ".")
        if name not in to_learn(tutor):
            assert torch.equal(value, untouched[plain]), "the language model itself does not change"
    save(to_learn(tutor), tmp_path / "learned.safetensors")
    again = build(corrected(untouched, tmp_path / "learned.safetensors"), HEADS, SHARED, 1e6)
    np.testing.assert_allclose(learn.answer(again, fresh, 8, 64), odds, atol=0.05)
    less = {name: value for name, value in to_learn(tutor).items() if not name.endswith("qkv.b")}
    save(less, tmp_path / "less.safetensors")
    with pytest.raises(BackboneError, match="does not fit the weights beside it"):
        corrected(dict(tutor_of(4).state_dict()), tmp_path / "less.safetensors")


def test_weights_are_read_as_the_format_says(tmp_path: Path) -> None:
    tensors = made(tmp_path / "model.gguf")
    packed, about = pack(tmp_path / "model.gguf", LAYERS - 1)
    save_file(packed, tmp_path / "weights.safetensors", metadata=about)
    state, numbers = unpack(tmp_path / "weights.safetensors")
    assert numbers == (HEADS, SHARED, 1e6)
    np.testing.assert_allclose(state["word.weight"], tensors["token_embd.weight"], rtol=1e-5)
    head = tensors["output.weight"][98] - tensors["output.weight"][100]
    np.testing.assert_allclose(state["head.weight"][0], head, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(state["layers.1.down.weight"], tensors["blk.1.ffn_down.weight"], rtol=1e-5, atol=1e-7)
    joined = np.concatenate([tensors[f"blk.0.attn_{each}.weight"] for each in "qkv"])
    np.testing.assert_allclose(state["layers.0.qkv.weight"], joined, rtol=1e-5, atol=1e-7)
    tutor = build(state, *numbers)
    assert len(tutor.layers) == LAYERS - 1
    with pytest.raises(SystemExit, match="fewer than 4 layers"):
        pack(tmp_path / "model.gguf", LAYERS + 1)


def written_store(folder: Path) -> Path:
    """A store of some rows with hand-made labels, and the pool of what may be asked beside it."""
    texts = [f"{word} number {n}" for word in ("tea", "war") for n in range(6)]
    label = {"tea": ("tea", "a drink", "tea (a drink)"), "war": ("war", "a fight between armies")}
    rows = [Row("posts", text) for text in texts] + [Row("news", "nobody's label")]
    rows.append(Row("written-bob", "nobody's label", "written"))  # with no label left, in a source with none
    rows += [
        Row("written-ann", text, "written", (label[text[:3]],), (label["war" if text[:3] == "tea" else "tea"],))
        for text in texts[::2]
    ]
    store, labels = assemble(rows, [], Tokenizer.from_file(str(TOKENIZER)), CONFIG)
    store.save(folder / "store.npz")
    pool.write(rows, labels, {texts[1]}, folder, CONFIG["tutored"])
    return folder / "store.npz"


def examples_of(store: Store, settings: dict[str, Any], said: Tutored) -> Examples:
    cosines = Cosines(np.zeros((13, 1), dtype=np.int32), np.zeros((13, 1), dtype=np.float16))
    return Examples(store, cosines, Vocabulary.of(Tokenizer.from_file(str(TOKENIZER))), settings, (1, 2), tutored=said)


def test_the_pool_has_what_was_judged_and_others_of_its_sources(tmp_path: Path) -> None:
    store, asked = Store.load(written_store(tmp_path)), Pool.load(tmp_path / "pool.npz")
    assert sorted(asked.documents.tolist()) == [n for n in range(13) if n != 1]  # which is kept apart
    assert len(asked.labels) == 2
    assert [len(store.labels[int(n)]) for n in asked.labels] == [3, 2]
    source = dict(zip(asked.documents.tolist(), asked.source.tolist(), strict=True))
    assert all(asked.sources[n].tolist() == [source[0]] for n in range(2)), "where the texts come from"
    assert source[12] != source[0]


def test_near_labels_are_asked_most(tmp_path: Path) -> None:
    generator = torch.Generator().manual_seed(7)
    labels = torch.nn.functional.normalize(torch.randn(60, 8, generator=generator), dim=1)
    own = Ragged.of([[n, 59 - n] for n in range(60)])
    asked = Pool(np.arange(60), np.arange(60) % 2, np.arange(60), Ragged.of([[n % 2] for n in range(60)]), own)
    settings = {"seed": 13, "near": 3, "among": 4, "source": 2, "any": 1}
    chosen = near.choose(labels, labels, asked, settings)
    nearest = (labels @ labels.T).topk(4, dim=1).indices.numpy()
    for number in range(60):
        found = chosen[number].tolist()
        assert len(found) == len(set(found))
        assert {number, 59 - number} <= set(found), "what was judged for it"
        assert len(set(found) & set(nearest[number].tolist())) >= 3
        assert len([n for n in found if n % 2 == number % 2]) >= 2
    again = near.choose(labels, labels, asked, settings)
    assert again.values.tolist() == chosen.values.tolist()


def test_from_texts_to_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The four commands, one after the other, on a small model and a few texts; and examples of what was answered."""
    made(tmp_path / "model.gguf")
    store, encoder = written_store(tmp_path), tmp_path / "encoder.safetensors"
    save_file({name: value.clone() for name, value in Mini(SMALL).state_dict().items()}, encoder)
    sets = {
        "public": {"labels": ["a", "b"], "documents": ["one", "two"], "gold": [[0], [1]]},
        "judged": {"rows": [{"id": "x-1", "text": "one", "yes": [["a", "the first"]], "no": [["b", "the second"]]}]},
    }
    (tmp_path / "validation.json").write_text(json.dumps(sets))
    folder, measured = ("--folder", str(tmp_path)), ("--validation", str(tmp_path / "validation.json"))
    source, packed = ("--gguf", str(tmp_path / "model.gguf")), tmp_path / "weights.safetensors"

    def run(module: ModuleType, *command: str) -> None:
        monkeypatch.setattr(sys, "argv", ["command", *command])
        module.main()

    run(tokens, *source, *folder, *measured)
    run(weights, *source, "--layers", "2", "--out", str(packed))
    run(near, "--store", str(store), "--base", str(encoder), *folder, "--device", "cpu")
    answers = [tmp_path / "first.npz", tmp_path / "again.npz"]
    for path in answers:  # the second goes on behind the learning
        run(learn, *folder, *measured, "--out", str(path), "--rows", "2", "--columns", "256", "--device", "cpu")
    first, again = map(Tutored.load, answers)
    assert len(first.document) == 12
    np.testing.assert_allclose(first.odds, again.odds, atol=0.1)
    assert set(json.loads((tmp_path / "measured.json").read_text())) == {"public", "judged"}
    answers[0].rename(tmp_path / "tutored.npz")
    (tmp_path / "tutor").mkdir()
    packed.rename(tmp_path / "tutor" / "weights.safetensors")
    told = " ".join(tutored(tmp_path).split())
    assert "a tutor (model, of which a part of the layers) learned" in told
    assert f"about 12 texts whether labels apply, {len(first.odds):,} answers in all" in told
    assert tutored(tmp_path / "tutor") == ""
    document, chances = first[0]
    assert all(0 < chance < 1 for chance in chances.values())
    settings = CONFIG["train"] | {"kinds": {"tutored": 1.0}, "exact": 0.0}
    examples = examples_of(Store.load(store), settings, first)
    example = examples.tutored(0)
    assert example is not None
    assert example.embedding == document
    assert {round(answer, 6) for _, answer in example.slots} <= {round(chance, 6) for chance in chances.values()}


def test_hand_made_answers_are_softened_by_what_the_tutor_said(tmp_path: Path) -> None:
    store = Store.load(written_store(tmp_path))
    row = int(np.flatnonzero(np.diff(store.row_yes.offsets))[0])
    (yes,), (no,) = store.row_yes[row].tolist(), store.row_no[row].tolist()
    said = Tutored(store.row_document[row : row + 1], Ragged.of([[yes, no]]), np.array([0.0, 50.0], dtype=np.float16))
    for share, expected in ((0.5, {0.75, 0.5}), (0.0, {1.0, 0.0})):
        settings = CONFIG["train"] | {
            "exact": 0.0,
            "written": CONFIG["train"]["written"] | {"softened": share, "others": 0},
        }
        found = examples_of(store, settings, said).written(row)
        assert found is not None
        assert {round(answer, 6) for _, answer in found.slots} == expected
        assert found.final


def test_no_teacher_of_the_rounds_changes_what_the_tutor_said() -> None:
    said, guessed = (Example(tokens=[1, 2], positions=[0, 1], segments=[1, 1], slots=[(1, 0.3)]) for _ in range(2))
    said.final = True
    batch = next(packed_rows(iter([said, guessed] * 40), rows=1, columns=8))
    assert batch.final.tolist() == [True, False, True, False]


def test_a_text_that_is_cut_keeps_the_line_before_its_question(tmp_path: Path) -> None:
    made(tmp_path / "model.gguf")
    tokenizer = tokens.tokenizer_of(tmp_path / "model.gguf")
    short, long = (tokens.document("a" * n) for n in (3, 3 * tokens.LONGEST))
    found = tokens.tokens(tokenizer, [short, long])
    assert len(found[1]) == tokens.LONGEST
    assert found[0][-1] == found[1][-1]
    assert tokenizer.decode([int(found[1][-1])]) == "\n"
