"""The line before the model: what shares a batch never shows, nobody waits for ever, and who leaves is forgotten."""

import asyncio
import threading

import numpy as np
import pytest
from fakes import FakeBackbone
from hypothesis import given, settings
from hypothesis import strategies as st

from setscore import Document, SetScoreClassifier
from setscore.errors import SetScoreError
from setscore.server.batching import Batcher
from setscore.server.errors import Refused
from setscore.server.settings import Limits

TEXTS = ["crude oil fell", "rain all week", "the invoice was wrong", "oil and rain", "nothing of it", "sun"]
SETS = [{"oil": None, "rain": "rain or sun"}, {"rain": None}, {"invoice": "a wrong charge", "oil": None, "sun": None}]


def together(work, limits=Limits()):
    """Runs `work` with a batcher that is started, in a loop of its own."""

    async def run():
        batcher = Batcher(limits)
        batcher.start()
        try:
            return await work(batcher)
        finally:
            await batcher.stop()

    return asyncio.run(run())


class Slow(FakeBackbone):
    """Answers when it is let."""

    def __init__(self):
        super().__init__()
        self.let, self.asked = threading.Event(), threading.Event()

    def log_odds(self, queries):
        self.asked.set()
        assert self.let.wait(10)
        return super().log_odds(queries)


@settings(max_examples=30, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 2), st.lists(st.sampled_from(TEXTS), min_size=1, max_size=5)), min_size=1, max_size=8
    ),
    st.integers(1, 400),
)
def test_answers_are_those_of_the_python_interface_whatever_shares_the_batch(requests, tokens):
    models = [SetScoreClassifier(labels, backbone=FakeBackbone()) for labels in SETS]

    async def work(batcher):
        jobs = [batcher.classify(models[which], [Document(text) for text in texts]) for which, texts in requests]
        return await asyncio.gather(*jobs)

    answers = together(work, Limits(tokens=tokens, patience=0.0))
    for (which, texts), found in zip(requests, answers, strict=True):
        alone = models[which].classify(texts)
        assert found == list(alone)


def test_requests_share_a_batch():
    backbone = FakeBackbone()
    model = SetScoreClassifier(SETS[0], backbone=backbone)

    async def work(batcher):
        await asyncio.gather(*(batcher.classify(model, [Document(text)]) for text in TEXTS))
        return batcher.metrics.text().decode()

    told = together(work)
    assert backbone.calls == 1
    assert "setscore_batch_requests_sum 6.0" in told
    assert "setscore_documents_total 6.0" in told


def test_a_large_request_does_not_keep_a_small_one_waiting():
    backbone = FakeBackbone()
    model = SetScoreClassifier(SETS[1], backbone=backbone)
    done = []

    async def work(batcher):
        async def ask(name, count):
            await batcher.classify(model, [Document(f"rain {name} {n}") for n in range(count)])
            done.append(name)

        await asyncio.gather(ask("large", 40), ask("small", 2))

    together(work, Limits(tokens=60))
    assert done == ["small", "large"]


def test_patient_work_has_no_place_in_the_line_and_is_done():
    model = SetScoreClassifier(SETS[1], backbone=FakeBackbone())

    async def work(batcher):
        documents = [Document(f"rain {n}") for n in range(30)]
        return await batcher.classify(model, documents, patient=True)

    assert len(together(work, Limits(waiting=5, tokens=100))) == 30


def test_what_does_not_fit_into_the_line_is_told_to_come_again():
    backbone = Slow()
    model = SetScoreClassifier(SETS[1], backbone=backbone)

    async def work(batcher):
        first = asyncio.create_task(batcher.classify(model, [Document("rain")]))
        await asyncio.to_thread(backbone.asked.wait, 10)
        second = asyncio.create_task(batcher.classify(model, [Document("sun")] * 3))
        await asyncio.sleep(0)
        with pytest.raises(Refused, match="3 documents wait already, and 4 may") as refused:
            await batcher.classify(model, [Document("sun")] * 2)
        backbone.let.set()
        await asyncio.gather(first, second)
        return refused.value

    refused = together(work, Limits(waiting=4))
    assert refused.status_code == 429
    assert int(refused.headers["Retry-After"]) >= 1


def test_who_leaves_frees_the_place_and_is_not_asked():
    backbone = Slow()
    model = SetScoreClassifier(SETS[1], backbone=backbone)

    async def work(batcher):
        first = asyncio.create_task(batcher.classify(model, [Document("rain")]))
        await asyncio.to_thread(backbone.asked.wait, 10)
        leaving = asyncio.create_task(batcher.classify(model, [Document("sun")] * 7))
        await asyncio.sleep(0)
        assert batcher.waiting == 7
        leaving.cancel()
        await asyncio.gather(leaving, return_exceptions=True)
        assert batcher.waiting == 0
        backbone.let.set()
        await first
        await batcher.classify(model, [Document("wind")])
        return batcher.metrics.text().decode()

    told = together(work)
    assert backbone.queries == 2
    assert "setscore_abandoned_total 7.0" in told


def test_one_label_set_that_cannot_be_asked_does_not_disturb_another():
    narrow = FakeBackbone(context=200)
    good = SetScoreClassifier({"rain": None}, backbone=narrow)
    bad = SetScoreClassifier({"rain": "word " * 190}, backbone=narrow)

    async def work(batcher):
        return await asyncio.gather(
            batcher.classify(bad, [Document("rain")]),
            batcher.classify(good, [Document("rain")]),
            return_exceptions=True,
        )

    failed, (found,) = together(work)
    assert isinstance(failed, SetScoreError)
    assert "Shorten that label" in str(failed)
    assert found == good.classify(["rain"])[0]


def test_the_embedded_model_gives_the_same_bits_alone_and_in_company():
    texts = [f"{'The price of crude oil fell again. ' * n}It rained on day {n}." for n in (1, 2, 5, 9, 14, 30)]
    models = [SetScoreClassifier(labels) for labels in SETS]
    alone = [[model.classify([text])[0].log_odds for text in texts] for model in models]

    async def work(batcher):
        jobs = [batcher.classify(model, [Document(text)]) for text in texts for model in models]
        return await asyncio.gather(*jobs)

    found = iter(together(work))
    for place in range(len(texts)):
        for one in alone:
            (prediction,) = next(found)
            np.testing.assert_array_equal(list(prediction.log_odds.values()), list(one[place].values()))
