"""The drop-in for the zero-shot pipeline of transformers, and a different label set for each document."""

from setscore import SetScoreClassifier, pipeline

# The call and the result are those of transformers.pipeline("zero-shot-classification").
zero_shot = pipeline("zero-shot-classification")
result = zero_shot(
    "Crude prices fell again after OPEC raised its output.", ["oil", "business", "sports"], multi_label=True
)
for label, score in zip(result["labels"], result["scores"], strict=True):
    print(f"{score:6.1%}  {label}")

# The inventory holds every label; `candidates` says which of them are asked for each document.
classifier = SetScoreClassifier(["oil", "business", "weather", "travel", "software"])
documents = ["The hotel was lovely, but it rained all week.", "The app crashes whenever I open the calendar."]
candidates = [["weather", "travel"], ["software", "business"]]
scores = classifier.score_documents(documents, candidates=candidates)
print(f"{scores.scored.sum()} of {scores.scored.size} questions asked")
for document, labels in zip(documents, classifier.predict_labels(documents, candidates=candidates), strict=True):
    print(sorted(labels), document)
