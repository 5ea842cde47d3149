"""Servers on HTTP: rewards for the trainers of others, and a policy by the OpenAI API."""
