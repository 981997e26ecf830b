"""A guarantee on recall or precision, through MAPIE (extra "conformal").

recall     conformal risk control (Angelopoulos et al., 2022): the expected recall of a new document is at least `level`
precision  learn then test (Angelopoulos et al., 2021): with probability `confidence` over the draw of the labelled
           slice, the expected precision is at least `level`; a document with nothing predicted counts as 0

Both hold for documents drawn like the labelled ones, whatever the model. Recall is a share of a document's true
labels, so MAPIE takes only documents that have one: the others are left out of the fit, `choice_` counts them, and the
guarantee speaks of documents with at least one true label. The slice is split in two: one half fits the probabilities,
the other, unseen by them, the threshold.
"""

import warnings
from typing import Any, ClassVar, Self

import numpy as np

from setscore.calibration.base import SEED, Calibration
from setscore.calibration.platt import PlattCalibration
from setscore.errors import MissingExtraError, SetScoreError, counted, plural, unknown_name
from setscore.records import BoolArray, FloatArray, IntArray

TARGETS = ("recall", "precision")
# Thresholds that are tried, at quantiles of the probabilities; precision pays for each (a Bonferroni correction).
CUTS = {"recall": 200, "precision": 30}


class ConformalCalibration(Calibration):
    """`target` is "recall" or "precision", `level` the least value to keep, `confidence` is for precision only.

    Fitted: `map_`, the probabilities; `cut_`, from which on they are predicted; `left_out_`, documents without a true
    label that the guarantee does not speak of.
    """

    name: ClassVar[str] = "conformal"
    fitted: ClassVar[tuple[str, ...]] = ("left_out_", "cut_")

    def __init__(
        self,
        *,
        target: str = "recall",
        level: float = 0.9,
        confidence: float = 0.9,
        least: int = 0,
        most: int | None = None,
        margin: float = 0.0,
    ) -> None:
        super().__init__(least=least, most=most, margin=margin)
        self.target = target
        self.level = level
        self.confidence = confidence

    def _fit_logits(self, log_odds: FloatArray, gold: BoolArray, fold: IntArray) -> str:  # noqa: ARG002
        """Probabilities on one half of the slice, the cut on the other."""
        first, second = np.array_split(np.random.default_rng(SEED).permutation(len(gold)), 2)
        labelled = second[gold[second].any(axis=1)]
        self.left_out_ = len(second) - len(labelled)
        if not len(first) or not len(labelled):
            raise SetScoreError(
                f"{counted(len(gold), 'document')} {plural(len(gold), 'is', 'are')} too few to split in two with a"
                " gold label in each half."
            )
        self.map_ = PlattCalibration().fit(log_odds[first], gold[first])
        self.cut_ = self._controlled_cut(self.map_.transform(log_odds[labelled]), gold[labelled])
        return (
            f"{self.target} of at least {self.level:g} at threshold {self.cut_:.3g}, from"
            f" {counted(len(labelled), 'document')}; {self.left_out_} without a true label were left out, and the"
            " guarantee does not speak of such documents"
        )

    def _fit_thresholds(self, log_odds: FloatArray, gold: BoolArray) -> FloatArray:  # noqa: ARG002
        return np.full(log_odds.shape[1], np.nextafter(self.cut_, 1.0))  # MAPIE takes what is above the cut

    def _controlled_cut(self, probabilities: FloatArray, gold: BoolArray) -> float:
        try:
            from mapie.risk_control import MultiLabelClassificationController
        except ImportError as error:
            raise MissingExtraError("the conformal calibration", "conformal") from error
        quantiles = np.quantile(probabilities, np.linspace(0, 1, CUTS[self.target], endpoint=False))
        cuts = np.unique(np.concatenate([[0.0], quantiles]))
        controller = MultiLabelClassificationController(
            predict_function=lambda rows: rows,
            risk=self.target,
            target_level=self.level,
            confidence_level=self.confidence if self.target == "precision" else None,
            predict_params=cuts,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # its warning about an unreachable level becomes our error
            controller.calibrate(probabilities, gold.astype(np.int64))
        found = np.ravel(np.asarray(controller.best_predict_param, dtype=np.float64))
        if not found.size or not np.isfinite(found[0]):
            raise SetScoreError(
                f"no threshold keeps {self.target} at {self.level:g} here; lower the level or label more documents."
            )
        return float(found[0])

    def _logits(self, log_odds: FloatArray) -> FloatArray:
        return self.map_._logits(log_odds)

    def check_options(self) -> None:
        super().check_options()
        if self.target not in TARGETS:
            raise SetScoreError(unknown_name("target", self.target, TARGETS))
        if not (0 < self.level < 1 and 0 < self.confidence < 1):
            raise SetScoreError(f"level and confidence lie between 0 and 1, got {self.level} and {self.confidence}.")

    def state(self) -> dict[str, Any]:
        self._check_fitted()
        fitted = {key: getattr(self, key) for key in ("choice_", "fingerprint_", "left_out_", "cut_")}
        fitted["thresholds_"] = self.thresholds_.tolist()
        options = self.get_params(deep=False)
        return {"name": self.name, "options": options, "fitted": fitted, "map": self.map_.state()}

    @classmethod
    def restore(cls, state: dict[str, Any], n_labels: int) -> Self:
        calibration = super().restore(state, n_labels)
        calibration.map_ = PlattCalibration.restore(state["map"], n_labels)
        return calibration
