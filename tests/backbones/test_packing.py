"""The grid that queries are laid out in, and how rows become batches."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from setscore.backbones.asking import Question, make_batches, make_rows, pack

token_lists = st.lists(st.integers(1, 30_000), min_size=1, max_size=12).map(tuple)


@st.composite
def asked(draw):
    """Documents with questions, numbered in the order they were asked."""
    documents = draw(st.lists(token_lists, min_size=1, max_size=5, unique=True))
    groups, number = {}, 0
    for document in documents:
        questions = []
        for tokens in draw(st.lists(token_lists, min_size=1, max_size=6)):
            slots = tuple(sorted(draw(st.sets(st.integers(0, len(tokens) - 1), min_size=1, max_size=3))))
            questions.append(Question(number, tokens, slots))
            number += 1
        groups[document] = questions
    return groups, number


@given(asked(), st.booleans(), st.integers(8, 80), st.integers(16, 200))
def test_every_slot_is_read_once_and_shows_its_own_token(case, shared, row_tokens, batch_tokens):
    groups, count = case
    by_number = {q.query: (document, q) for document, questions in groups.items() for q in questions}
    read: list[tuple[int, int]] = []
    for batch in make_batches(make_rows(groups, shared=shared, row_tokens=row_tokens), shared=shared,
                              batch_tokens=batch_tokens):  # fmt: skip
        packed = pack(batch, shared=shared)
        for b, s in zip(*np.nonzero(packed.owners >= 0), strict=True):
            document, question = by_number[int(packed.owners[b, s])]
            column = int(packed.slots[b, s])
            offset = int(packed.positions[b, column]) - len(document)  # questions go on after the document
            assert packed.token_ids[b, column] == question.tokens[offset]
            assert offset in question.slots
            read.append((question.query, offset))
    expected = [(q.query, slot) for questions in groups.values() for q in questions for slot in q.slots]
    assert sorted(read) == sorted(expected)
    assert len({number for number, _ in read}) == count


@given(asked(), st.booleans())
def test_a_row_holds_its_document_and_questions_and_nothing_else(case, shared):
    groups, _ = case
    rows = make_rows(groups, shared=shared, row_tokens=10_000)
    assert len(rows) == (len(groups) if shared else sum(len(questions) for questions in groups.values()))
    packed = pack(rows, shared=shared)
    for b, row in enumerate(rows):
        tokens = [*row.document, *(token for question in row.questions for token in question.tokens)]
        assert sorted(packed.token_ids[b][packed.segments[b] > 0].tolist()) == sorted(tokens)
        assert (packed.token_ids[b][packed.segments[b] == 0] == 0).all()


def test_shared_segments_and_positions_as_drawn_in_the_docstring():
    first, second = Question(0, (21, 22), (1,)), Question(1, (31, 32, 33), (2,))
    rows = make_rows({(11, 12, 13): [first, second]}, shared=True, row_tokens=100)
    packed = pack(rows, shared=True)
    assert packed.segments.tolist() == [[1, 1, 1, 2, 2, 0, 3, 3, 3]]
    assert packed.positions.tolist() == [[0, 1, 2, 3, 4, 0, 3, 4, 5]]
    assert packed.token_ids.tolist() == [[11, 12, 13, 21, 22, 0, 31, 32, 33]]
    assert packed.slots.tolist() == [[4, 8]]
    assert packed.owners.tolist() == [[0, 1]]


def test_exact_rows_have_one_segment():
    packed = pack(make_rows({(11, 12): [Question(0, (21, 22), (1,))]}, shared=False, row_tokens=100), shared=False)
    assert packed.segments.tolist() == [[1, 1, 1, 1]]
    assert packed.positions.tolist() == [[0, 1, 2, 3]]


@given(asked(), st.booleans(), st.integers(16, 200))
def test_batches_keep_to_their_budget(case, shared, batch_tokens):
    groups, _ = case
    rows = make_rows(groups, shared=shared, row_tokens=60)
    batches = list(make_batches(rows, shared=shared, batch_tokens=batch_tokens))
    assert sorted(id(row) for batch in batches for row in batch) == sorted(map(id, rows))
    for batch in batches:
        assert len(batch) == 1 or pack(batch, shared=shared).token_ids.size <= batch_tokens


def test_many_questions_are_split_into_rows_of_like_length():
    questions = [Question(i, (7,) * (3 + i % 5), (0,)) for i in range(100)]
    rows = make_rows({(1, 2, 3, 4): questions}, shared=True, row_tokens=64)
    assert sum(len(row.questions) for row in rows) == 100
    assert all(4 + len(row.questions) * row.longest <= 64 for row in rows)
    assert sum(row.longest - len(q.tokens) for row in rows for q in row.questions) <= 4 * 20  # little padding
