"""coordbench: do these models coordinate over shared resources?"""

__version__ = "0.1.0"
