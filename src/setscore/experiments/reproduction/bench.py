"""Where runs are made: each once, kept in folders, and what cannot be made is known with its reason."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from setscore.datasets import Dataset, find_source, load_dataset
from setscore.errors import SetScoreError
from setscore.experiments.evaluation import Experiment, split
from setscore.experiments.reproduction.planning import Choice, config_of
from setscore.experiments.reproduction.registry import HEADLINE, Need, methods
from setscore.experiments.runs.config import RunConfig, make_config
from setscore.experiments.runs.execution import load_experiment
from setscore.experiments.runs.folder import STORE, Run, make_run
from setscore.records import Progress


class MissingError(SetScoreError):
    """A cell that cannot be measured here: weights or documents that are not there."""


@dataclass
class Bench:
    """Makes runs under `folder`, with what the user chose; `planned` says with which seeds each is made.

    made    folders that this bench has made or found, by need; `asked` counts the questions that were put to models
    failed  reasons, by the weights or the dataset that is missing: a hub that does not answer is asked once
    """

    folder: Path
    choice: Choice
    planned: Mapping[tuple[str, str, str], Need]
    progress: Progress | None = None
    made: dict[Need, Run] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    asked: int = 0
    _documents: dict[str, Experiment] = field(default_factory=dict)

    def run(self, need: Need) -> Run:
        """The run of a need, with at least its seeds."""
        wanted = self.planned.get((need.method, need.dataset, need.template), need)
        if wanted not in self.made:
            self.made[wanted] = self._make(wanted)
        return self.made[wanted]

    def _make(self, need: Need) -> Run:
        weights = methods()[need.method].weights
        if not self.choice.uses(weights):
            raise MissingError(
                "with --backbone the rows of diffusion backbones are made; --cell METHOD/DATASET makes others, and so"
                f" does --weights {weights.name}=PLACE."
            )
        place = f"weights {self.choice.place(weights)}"
        for what in (place, f"dataset {need.dataset}"):
            if what in self.failed:
                raise MissingError(self.failed[what])
        self.documents(need.dataset)
        config = config_of(need, self.choice)
        try:
            run, new = make_run(
                config, self.folder / _name(config), store=self.folder / STORE, progress=self._told(need)
            )
        except SetScoreError as error:
            self.failed[place] = str(error)
            raise MissingError(str(error)) from error
        self.asked += int(run.cost["asked"]) if new else 0
        return run

    def documents(self, dataset: str) -> Experiment:
        """The documents of a dataset, as runs of the headline seed have them."""
        if dataset not in self._documents:
            about: dict[str, object] = {"name": dataset, "slices": self.choice.slices, "data_dir": self.choice.data_dir}
            about |= {"limit": self.choice.limit, "label_text": self.choice.label_text}
            content = {key: value for key, value in about.items() if value is not None}
            try:
                config = make_config({"protocol": "paper", "seeds": HEADLINE, "dataset": content})
                self._documents[dataset] = load_experiment(config.resolved())
            except SetScoreError as error:
                self.failed[f"dataset {dataset}"] = str(error)
                raise MissingError(str(error)) from error
        return self._documents[dataset]

    def test(self, dataset: str) -> Dataset:
        """The documents that are measured on; of a pool those that are left after the headline's validation."""
        return split(self.documents(dataset), HEADLINE[0])[1]

    def has_papers_documents(self, dataset: str) -> bool:
        """Whether as many documents are measured on as the paper's slice has: made-up or missing files show here."""
        try:
            return len(self.test(dataset)) == find_source(dataset).test_size
        except MissingError:
            return False

    def train_size(self, dataset: str) -> int:
        """Documents of the training split that is there."""
        try:
            place = None if self.choice.data_dir is None else Path(self.choice.data_dir)
            return len(load_dataset(find_source(dataset).name, "train", place))
        except SetScoreError as error:
            raise MissingError(str(error)) from error

    def _told(self, need: Need) -> Progress | None:
        if self.progress is None:
            return None
        tell, where = self.progress, f"{need.dataset}, {methods()[need.method].title}"
        return lambda what, done, total: tell(f"{where}: {what}", done, total)


def _name(config: RunConfig) -> str:
    method = config.method
    what = (method.baseline or method.scorer).partition("?")[0]
    return f"{config.dataset.name}-{what}-{config.key()[:12]}"
