"""Audits: what a reward really accepts, found out before any training is paid for.

rewardlab audit my_reward.py:reward --problems problems.jsonl

target.py     what is audited, by its name: a built-in reward, a Python function, a judge endpoint, a recipe's reward
process.py    the process that the target runs in, with a hard limit for each call (serve.py is what runs there)
problems.py   questions with right answers, and wrong ones that come close: our own (built_in.py), or the user's
replies.py    what a policy may write: honest dresses of an answer, tricks, hostile text
rules.py      what must be paid for which reply, and how bad it is if it is not
audit.py      the audit itself, within its budget of seconds; conduct.py: threads, order, batches, repeated calls
page.py       the report for people, as one HTML file
"""
