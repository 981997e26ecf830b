"""Measuring SetScore; nothing here is installed with it.

    speed/    ratios against what a user would pick instead
    studies/  one question each: few labelled documents, unfitted decisions, tuning, shortlists, int4, embeddings
    pages/    writers of the pages of results in docs/

Each is run as a file or as a module: python benchmarks/speed/cpu.py, python -m benchmarks.speed.cpu.
"""
