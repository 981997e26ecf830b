"""A causal language model that learned to answer (recipes/tutor), as a backbone."""
