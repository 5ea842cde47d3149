"""Web pages that a model wrote: run, looked at and clicked on in a browser of their own."""
