"""A tutor: a larger language model that learns what was judged and written by hand, and answers about many more texts.

`weights` makes a small file of a GGUF one, `tokens` the texts as its tokens, `learn` trains it and asks it, on a GPU.
"""
