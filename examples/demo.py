"""What `make demo` shows: eight documents, a dozen labels, no training. Labels in brackets nearly applied."""

import textwrap
from pathlib import Path

from setscore import SetScoreClassifier, read_labels

FOLDER = Path(__file__).parent
NEARLY = 0.25  # probability; from 0.5 on a label applies

documents = (FOLDER / "demo_documents.txt").read_text(encoding="utf-8").splitlines()
classifier = SetScoreClassifier(read_labels(FOLDER / "demo_labels.yaml"))
print(f"{len(documents)} documents, {len(classifier.classes_)} labels: {', '.join(classifier.classes_)}", end="\n\n")

for text, found in zip(documents, classifier.classify(documents), strict=True):
    likely = sorted(found.probabilities.items(), key=lambda one: -one[1])
    applies = [f"{name} {value:.0%}" for name, value in likely if name in found.labels]
    nearly = [f"({name} {value:.0%})" for name, value in likely if name not in found.labels and value >= NEARLY]
    print(textwrap.shorten(text, 110, placeholder=" ..."))
    print(f"    {', '.join(applies) or 'none of the labels'} {' '.join(nearly)}".rstrip())

print("""
A label in brackets would nearly apply, from 25% on. Texts are shortened; examples/demo_documents.txt has them whole.
No document was labelled for this: the model had only the names and descriptions of the labels. Three next steps:
  1. your own texts, one a line:   .venv/bin/setscore classify --file texts.txt --labels examples/demo_labels.yaml
  2. a classifier that learns:     docs/tutorial/tickets.md
  3. a page in the browser:        .venv/bin/pip install '.[serve]', then .venv/bin/setscore serve""")
