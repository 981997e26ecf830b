"""Labels with descriptions: the set of labels of each document, and the probability of every label.

A name is what you get back. A description is what the question says, where the name alone does not say it.
"""

from setscore import SetScoreClassifier

LABELS = {
    "refund": "a request to get money back",
    "delivery": "the delivery of an order or parcel",
    "fault": "something that is broken or does not work",
    "weather": None,  # the name says it all
}
DOCUMENTS = [
    "My parcel arrived broken and I would like my money back.",
    "The kettle stopped working after four days.",
    "Heavy snow kept the couriers at home, so nothing arrived before Monday.",
    "What time do you close on Sundays?",
]

classifier = SetScoreClassifier(LABELS)
probabilities = classifier.predict_proba(DOCUMENTS)  # [n_documents, n_labels]
sets = classifier.predict_labels(DOCUMENTS)

for document, row, labels in zip(DOCUMENTS, probabilities, sets, strict=True):
    print(document)
    print("   applies:", ", ".join(sorted(labels)) or "none")
    for name, probability in zip(classifier.classes_, row, strict=True):
        print(f"   {probability:6.1%}  {name}")
