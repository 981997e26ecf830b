"""The report of some runs: one HTML file that needs nothing else, and the same tables as Markdown, LaTeX and CSV."""
