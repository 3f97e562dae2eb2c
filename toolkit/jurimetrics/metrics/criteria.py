"""The built-in rubrics: what each level looks like in an answer, in our own words.

Levels describe what can be pointed at, and neighbouring levels exclude each other. Sources of the criteria: Azure's
general purpose and question-answering evaluators (2025-05), Globant's evaluation metrics (2025-04), GitLab's Centralized
Evaluation Framework; none of their wording.
"""

from __future__ import annotations

from jurimetrics.metrics.rubrics import rubric

coherence = rubric(
    "Coherence: the answer presents its ideas in a logical order and connects them, so that a reader follows the thought "
    "from beginning to end; where there is a question, it is the question that the thought leads to. Whether it is true "
    "plays no part. An answer of one sentence can be fully coherent.",
    name="coherence",
    uses=("question",),
    levels={
        1: "No thread: disconnected words or sentences, or none that has to do with the question.",
        2: "Broken thread: single sentences can be understood, but most stand beside each other unconnected, or the answer "
        "contradicts itself.",
        3: "A thread with gaps: most sentences connect, but at least one step is missing, out of order or abrupt, and a "
        "reader must fill it in.",
        4: "A clear thread: no step is missing; at most a transition is rough, a point repeated or slightly beside the way.",
        5: "A thread without a gap: every sentence follows from the one before and leads to the point.",
    },
)

fluency = rubric(
    "Fluency: grammar, spelling, choice of words and sentence structure of the answer, as language, whatever it says. A "
    "short answer is rated by the words it has.",
    name="fluency",
    levels={
        1: "Hardly language: errors keep a reader from understanding most of it.",
        2: "Broken: errors in most sentences; the meaning must be guessed in places.",
        3: "Understandable: the meaning is always clear, but there are several errors, or the sentences are clumsy.",
        4: "Well written: at most a slip or two; plain or repetitive in places.",
        5: "As a careful writer writes: no errors, precise words, sentences that read naturally throughout.",
    },
)

relevance = rubric(
    "Relevance: how far the answer gives what the question asks for. Whether it is true plays no part, nor how it is "
    "written.",
    name="relevance",
    needs=("answer", "question"),
    levels={
        1: "Speaks of something else: nothing in it has to do with what is asked.",
        2: "On the subject but no answer: it speaks of the matter, and not one thing that is asked is answered.",
        3: "A part: at least one thing that is asked is answered, and at least one that matters is not.",
        4: "All that is asked is answered, together with matter that does not serve the question.",
        5: "All that is asked is answered, and everything in the answer serves the question.",
    },
)

groundedness = rubric(
    "Groundedness: how far the statements of the answer are backed by the documents. A statement is backed if it follows "
    "from them; one that is true but not in them is not backed. Whether the answer is complete plays no part.",
    name="groundedness",
    needs=("answer", "contexts"),
    uses=("question",),
    levels={
        1: "None of its statements is backed, or its main statement contradicts the documents.",
        2: "Fewer than half of its statements are backed, the main one does not contradict the documents.",
        3: "Half of its statements or more are backed, but one that matters is not, or a minor one contradicts the "
        "documents.",
        4: "Every statement that matters is backed; only a detail goes beyond the documents, and none contradicts them.",
        5: "Every statement is backed by the documents.",
    },
)

similarity = rubric(
    "Similarity: how far the answer says the same as the reference, as an answer to the question: the same facts, whatever "
    "the words, the order or the length.",
    name="similarity",
    needs=("answer", "question", "reference"),
    levels={
        1: "Says something else: none of the facts of the reference, or the opposite of its main fact.",
        2: "Mostly different: some fact of the reference is there, but not the main one.",
        3: "Partly the same: the main fact is there, and at least one other that matters is missing or differs.",
        4: "Nearly the same: every fact that matters is there; a detail is missing, added or differs.",
        5: "The same: every fact of the reference and none that changes what it says.",
    },
)

accuracy_clarity = rubric(
    "Accuracy and clarity together, as one value. Accuracy: the key points, data and ideas of the reference are in the "
    "answer and nothing contradicts them. Clarity: structure, readability and concision of the answer. Rate accuracy; "
    "take off one or two tenths where the answer is hard to read or long-winded.",
    name="accuracy_clarity",
    needs=("answer", "reference"),
    uses=("question",),
    scale=(0, 1),
    step=0.1,
    threshold=0.7,
    levels={
        0: "None of the key points, or it cannot be read.",
        0.3: "Fewer than half of the key points, or a serious error.",
        0.5: "About half of the key points, no serious error.",
        0.8: "All key points but a minor one, no error, easy to read.",
        1: "All key points, no error, well structured and no longer than needed.",
    },
)

correctness = rubric(
    "Correctness: whether what the answer states is right. Where there is a reference, right is what agrees with it or "
    "does not conflict with it; otherwise what is known of the matter. What is left out plays no part.",
    name="correctness",
    uses=("question", "reference"),
    levels={
        1: "Wrong: the main statement is wrong, and so is most of the rest.",
        2: "Mostly wrong: the main statement is wrong, though most of the rest is right.",
        3: "Partly right: the main statement is right, and another that matters is wrong.",
        4: "Nearly right: every statement that matters is right; a detail is wrong or inexact.",
        5: "Right: no statement is wrong.",
    },
)

comprehensiveness = rubric(
    "Comprehensiveness: whether the answer covers what a full answer to the question would cover: every part of the "
    "question, and the conditions, steps and exceptions that a reader needs. Where there is a reference, it shows what a "
    "full answer covers. Whether it is true plays no part, and length is no coverage.",
    name="comprehensiveness",
    uses=("question", "reference"),
    levels={
        1: "Covers nothing that is needed.",
        2: "Covers less than half of what is needed.",
        3: "Covers half or more of what is needed; something that matters is missing.",
        4: "Covers all that matters; only a detail, condition or exception is missing.",
        5: "Covers all that is needed, with the conditions and exceptions.",
    },
)

readability = rubric(
    "Readability: how easily a reader who is new to the matter takes the answer in: structure, length of sentences, words "
    "that are explained, form that suits the content. Whether it is true or complete plays no part.",
    name="readability",
    levels={
        1: "Cannot be taken in: no structure at all, or words that a new reader does not know throughout.",
        2: "Hard: most sentences must be read twice, or the point is buried.",
        3: "Takes effort: some sentences must be read twice, terms go unexplained, or its form does not suit the content.",
        4: "Easy: read once and understood; a sentence could be shorter or a term explained.",
        5: "Effortless: the point is seen at once, every sentence is short enough, every term is known or explained.",
    },
)
