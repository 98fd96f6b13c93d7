"""Run folders: events by cell, blobs by hash, the manifest."""
