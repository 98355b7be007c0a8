"""The results store: versioned run documents, written atomically, read as DataFrames. Imports no torch."""
