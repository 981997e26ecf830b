"""Calibration: a few labelled documents choose probabilities and thresholds; the model itself stays as it is.

Ten documents keep the example short. Use about 200 for your own labels.
"""

import tempfile
from pathlib import Path

from setscore import SetScoreClassifier

LABELS = {
    "refund": "a request to get money back",
    "delivery": "the delivery of an order or parcel",
    "fault": "something that is broken or does not work",
    "praise": "praise for a product or service",
}
LABELLED = {
    "My parcel arrived broken and I would like my money back.": ["refund", "delivery", "fault"],
    "The courier was early and very kind, thank you!": ["delivery", "praise"],
    "The kettle stopped working after four days.": ["fault"],
    "Please return the payment to my card.": ["refund"],
    "Lovely chair, and it came in perfect condition.": ["delivery", "praise"],
    "The best lamp I have ever owned.": ["praise"],
    "Where can I park near your shop?": [],
    "The app crashes whenever I open the calendar.": ["fault"],
    "The box was empty. Send me a new one or pay me back.": ["refund", "delivery"],
    "I love this coat, but the zip is already stuck.": ["praise", "fault"],
}
NEW = ["The courier came on time and the table is wonderful."]

classifier = SetScoreClassifier(LABELS)
print("before:", sorted(classifier.predict_labels(NEW)[0]))
classifier.fit(list(LABELLED), list(LABELLED.values()))
print("after: ", sorted(classifier.predict_labels(NEW)[0]))
print("chosen:", classifier.calibration_.choice_)
print("thresholds:", dict(zip(LABELS, classifier.calibration_.thresholds_.round(2).tolist(), strict=True)))
with tempfile.TemporaryDirectory() as folder:
    classifier.save(Path(folder) / "tickets.json")
    print("loaded:", sorted(SetScoreClassifier.load(Path(folder) / "tickets.json").predict_labels(NEW)[0]))
