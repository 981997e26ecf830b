"""A tutor: a larger language model that learns what was judged and written by hand, and answers about many more texts.

In order: `pool` writes what it learns and may be asked, `tokens` the texts as its tokens, `weights` makes a small file
of a GGUF one, `near` chooses the labels to ask about each text, and `learn` trains it and asks it, on a GPU.
"""
