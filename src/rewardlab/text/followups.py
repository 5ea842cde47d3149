"""Users' follow-ups: common words of satisfaction and dissatisfaction, and the prompt by which a model plays the user."""

POSITIVE = ("Thanks, that is just what I asked for.", "Great answer, this helps me.")
NEGATIVE = ("That is not what I asked for.", "That is wrong, this does not help me.")
FRONT = "Please ask me a question and provide feedback to my answer."
"""What opens a conversation in which the model is the one who asks and reacts (Zhang et al. 2024, arXiv:2409.13948)."""
