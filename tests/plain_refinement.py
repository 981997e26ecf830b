"""Joint Set Refinement and Gibbs sampling word for word: one document, one question at a time, nothing remembered."""

import numpy as np
from scipy.special import expit, logit

from setscore.prompts import SetTemplate
from setscore.scorers.base import Window, mask_set


class Plain:
    """`asked` holds every question put to the backbone, with repetitions."""

    def __init__(self, backbone, text, labels, seed):
        self.backbone, self.text, self.labels, self.m = backbone, text, labels, len(labels)
        self.random = Window(0, text, tuple(range(self.m)), labels.texts).generator(seed)
        self.asked = []

    def ask(self, y, masked, own):
        answers = [None if hidden else bool(value) for hidden, value in zip(masked, y, strict=True)]
        query = SetTemplate().query(self.text, self.labels.texts, answers)
        self.asked.append(query)
        (answer,) = self.backbone.log_odds([query])
        return float(answer[int(np.sum(masked[:own]))])

    def jsr(self, start, *, rule, sweeps, contexts):
        """The assignment, and the surrogate before and after every sweep."""
        y = start.copy()
        drawn = [[mask_set(self.random, self.m, label) for _ in range(contexts)] for label in range(self.m)]

        def local(y, label):
            return np.array([self.ask(y, masked, label) for masked in drawn[label]])

        def surrogate(y):
            signed = [local(y, label) * (1 if y[label] else -1) for label in range(self.m)]
            return sum(-np.logaddexp(0, -u).mean() for u in signed)

        trace = [surrogate(y)]
        for _ in range(sweeps):
            for label in self.random.permutation(self.m):
                if rule == "local":
                    u = local(y, label).mean()
                    y[label] = y[label] if u == 0 else u > 0
                else:
                    turned = y.copy()
                    turned[label] = not y[label]
                    y = turned if surrogate(turned) > surrogate(y) + 1e-12 else y
            trace.append(surrogate(y))
        return y, trace

    def gibbs(self, start, temperatures):
        """Log-odds of the mean of sigmoid(u) over the second half of the sweeps."""
        y, kept = start.copy(), []
        for temperature in temperatures:
            found = np.zeros(self.m)
            for label in self.random.permutation(self.m):
                u = self.ask(y, np.eye(self.m, dtype=bool)[label], label)
                y[label] = self.random.random() < expit(u / temperature)
                found[label] = expit(u)
            kept.append(found)
        return logit(np.mean(kept[len(temperatures) // 2 :], axis=0))
