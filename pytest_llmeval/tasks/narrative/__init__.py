"""Story annotations in JSON v3: characters, relationships, sentiments, action layer, text spans, and all together.

From document to metric: `document` reads, `alignment` pairs characters, events and relationships (`names` says which
names are one), each component counts, `composite` puts them together, `report` writes.
"""
