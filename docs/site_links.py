"""A hook of mkdocs: links out of docs/, to the source and its neighbours, lead to the repository."""

import re

OUTSIDE = re.compile(r"\]\((?:\.\./)+(src|tests|examples|results|benchmarks)/")


def on_page_markdown(markdown: str, config, **_: object) -> str:
    return OUTSIDE.sub(rf"]({config.repo_url}/blob/main/\1/", markdown)
