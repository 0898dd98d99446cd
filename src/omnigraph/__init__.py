"""OmniGraph: a typed property-graph database over Lance tables.

What exists today is the two languages, in `omnigraph.lang`; every error is a child of `OmniError`.
"""

from omnigraph.errors import (
    Diagnostic,
    LanguageError,
    MigrationError,
    OmniError,
    ParameterError,
    QueryError,
    SchemaError,
)

__version__ = "0.1.0"

__all__ = [
    "Diagnostic",
    "LanguageError",
    "MigrationError",
    "OmniError",
    "ParameterError",
    "QueryError",
    "SchemaError",
    "__version__",
]
