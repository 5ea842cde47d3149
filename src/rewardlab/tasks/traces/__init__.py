"""Questions over numbered documents, answered in traces that can be checked: faithful ones, and right answers for wrong reasons."""
