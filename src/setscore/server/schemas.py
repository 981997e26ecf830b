"""The shapes of requests and answers. What the types allow is taken; all else is refused before anything is asked."""

from collections.abc import Sequence
from typing import Annotated, Any, ClassVar, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    StrictBool,
    StrictFloat,
    StrictInt,
    StrictStr,
    Tag,
    model_validator,
)

from setscore.server.mistakes import BLANK, HYPOTHESIS, NAME, mistake, unknown_field

# Neither blank nor with blanks around it, in Python's sense, so that no two names are one.
Name = Annotated[StrictStr, Field(pattern=NAME)]
Solid = Annotated[StrictStr, Field(pattern=BLANK)]
Share = Annotated[StrictFloat, Field(ge=0, le=1)]


def _whole(value: object) -> object:
    """In JSON 3.0 is a whole number too."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


Count = Annotated[StrictInt, Field(ge=1, le=100_000), BeforeValidator(_whole)]


class Strict(BaseModel):
    """No field but those that are named."""

    model_config = ConfigDict(extra="forbid")
    instead: ClassVar[Sequence[str]] = ()  # fields of other shapes of the same request

    @model_validator(mode="before")
    @classmethod
    def _known(cls, value: Any) -> Any:
        """Says which fields there are where one is unknown."""
        strange = [name for name in value if name not in cls.model_fields] if isinstance(value, dict) else []
        if strange:
            raise unknown_field(str(strange[0]), [*cls.model_fields, *cls.instead])
        return value


class DocumentIn(Strict):
    """A text; `id` comes back with its answer, `candidates` are the labels to ask of it."""

    text: StrictStr
    id: Name | None = None
    candidates: Annotated[list[Name], Field(min_length=1)] | None = None


Documents = Annotated[list[StrictStr | DocumentIn], Field(min_length=1, description="Texts, or objects with a text.")]


def _pairs(value: object) -> object:
    """A list of names is a natural guess, so the mistake shows how it is written."""
    if isinstance(value, list):
        raise mistake('must be an object, as in {"oil": null, "sports": "games and players"}')
    return value


Labels = Annotated[
    dict[Name, Name | None],
    Field(
        min_length=1,
        description="Names, each with a description or null.",
        examples=[{"oil": None}],
        json_schema_extra={"additionalProperties": False},  # names that are none
    ),
    BeforeValidator(_pairs),
]


class Asked(Strict):
    """Documents for the labels that the server was started with."""

    instead: ClassVar[Sequence[str]] = ("labels", "classifier")
    documents: Documents
    threshold: Annotated[Share | None, Field(description="The probability from which a label applies.")] = None
    top_k: Count | None = None


class AskedLabels(Asked):
    """Documents and the labels to ask of them."""

    instead: ClassVar[Sequence[str]] = ()
    labels: Labels
    competition: Annotated[Share | None, Field(description="How much labels compete; 0 asks each on its own.")] = None
    label_text: Annotated[
        Literal["both", "description", "name"],
        Field(description="What a question says of a label: its name with its description, or one of them."),
    ] = "both"

    @model_validator(mode="before")
    @classmethod
    def _labels_alone(cls, value: Any) -> Any:
        if isinstance(value, dict) and "classifier" in value:
            raise mistake("must name labels or a classifier, not both")
        return value


class AskedClassifier(Asked):
    """Documents and the name of a classifier that the server was started with."""

    instead: ClassVar[Sequence[str]] = ()
    classifier: Annotated[Name, Field(description="Its name, as /info lists it.")]


def _which(value: Any) -> str:
    """By what a request says, so that its mistakes are told for one shape and not for all three.

    In brackets, because `mistakes` drops what is no key of the request from the place of a mistake.
    """
    given = value if isinstance(value, dict) else vars(value) if isinstance(value, Asked) else {}
    return "(labels)" if "labels" in given else "(classifier)" if "classifier" in given else "(own)"


AnyAsked = Annotated[
    Annotated[AskedLabels, Tag("(labels)")]
    | Annotated[AskedClassifier, Tag("(classifier)")]
    | Annotated[Asked, Tag("(own)")],
    Discriminator(_which),
]


class Explained(Strict):
    """A text whose sentences are weighed."""

    text: Solid
    labels: Labels | None = None
    classifier: Name | None = None


class PredictionOut(BaseModel):
    """What was found for one document; with an `error`, nothing else was."""

    id: str
    labels: list[str] = []
    probabilities: dict[str, float] = {}
    log_odds: dict[str, float] = {}
    truncated: bool = False
    undecided: list[str] | None = None
    error: str | None = None
    regime: Literal["zero-shot", "calibrated", "learned"]


class Answer(BaseModel):
    predictions: list[PredictionOut]


class Sentence(BaseModel):
    """Characters [start, end) of the text, and by label the log-odds with them minus those without them."""

    start: int
    end: int
    weights: dict[str, float]


class Explanation(BaseModel):
    prediction: PredictionOut
    sentences: list[Sentence]


class Refusal(BaseModel):
    error: str
    error_type: str


# Hugging Face


class ZeroShotParameters(Strict):
    candidate_labels: Annotated[list[Name], Field(min_length=1, json_schema_extra={"uniqueItems": True})]
    hypothesis_template: Annotated[StrictStr, Field(pattern=HYPOTHESIS)] | None = None
    multi_label: StrictBool | None = None


class ZeroShot(Strict):
    """What `huggingface_hub.InferenceClient.zero_shot_classification` sends."""

    inputs: Solid
    parameters: ZeroShotParameters


class Scored(BaseModel):
    label: str
    score: float


# text-embeddings-inference


class Rerank(Strict):
    """Texts to put in order by how much each is about the query."""

    query: Solid
    texts: Annotated[list[Solid], Field(min_length=1)]
    raw_scores: StrictBool = False
    return_text: StrictBool = False
    truncate: StrictBool | None = None
    truncation_direction: Literal["left", "right", "Left", "Right"] | None = None


class Ranked(BaseModel):
    index: int
    score: float
    text: str | None = None


Pair = Annotated[list[Solid], Field(min_length=1, max_length=2)]


class Predict(Strict):
    """A text; a pair of a text and a label; or a list of lists of one or two of them."""

    inputs: Solid | Pair | Annotated[list[Pair], Field(min_length=1)]
    raw_scores: StrictBool = False
    truncate: StrictBool | None = None
    truncation_direction: Literal["left", "right", "Left", "Right"] | None = None
