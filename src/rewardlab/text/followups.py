"""What users say after a reply: common words for being satisfied or not, and how a model is asked to take the user's part."""

POSITIVE = ("Thanks, that is just what I asked for.", "Great answer, this helps me.")
NEGATIVE = ("That is not what I asked for.", "That is wrong, this does not help me.")
FRONT = "Please ask me a question and provide feedback to my answer."
"""What opens a conversation in which the model is the one who asks and reacts (Zhang et al. 2024, arXiv:2409.13948)."""
