"""Audits: which replies a reward accepts, tested before training on it.

rewardlab audit my_reward.py:reward --problems problems.jsonl

loading.py    targets by their names: a built-in reward, a Python function, a judge endpoint (judge.py), a recipe's reward
pairwise.py   a judge that compares two replies: order, length and shows, on pairs whose better reply is known
process.py    the process that the target runs in, with a hard limit for each call; it runs serve.py
problems.py   questions with right answers, and wrong ones that come close: built-in ones (built_in.py), or the user's
replies.py    what a policy may write: an answer in the usual answer formats, tricks, hostile text
levels.py     which answer formats the reward reads, and what right and wrong answers get in each
rules.py      which replies must be accepted or refused, and how severe it is if they are not
audit.py      the audit itself, within its budget of seconds; conduct.py: threads, order, batches, repeated calls
page.py       the report as one HTML file; terminal.py: the report in a terminal
"""
