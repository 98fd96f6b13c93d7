"""Run folders: events by cell, blobs by hash, the manifest. The only truth of a run.

::

    runs/<date>-<task>-<hash>/
      manifest.json        resolved spec and hash, plan, plugins and versions, host, seeds
      cells/<cell>.jsonl   append-only; an episode's events are one block, fsynced at its end
      blobs/<cell>.jsonl   prompts and raw replies by SHA-256, written before the events
      cells/*.torn-<k>     what a kill left half-written, set aside
      scores/ report/      derived, rebuildable
"""

from coordbench.store.finding import find_run
from coordbench.store.manifests import check_resume, read_manifest
from coordbench.store.reader import StoredRun
from coordbench.store.writer import RunWriter

__all__ = ["RunWriter", "StoredRun", "check_resume", "find_run", "read_manifest"]
