"""The data pipeline: bulk loads, export, embeddings, streaming and queries at scale, on Spark."""
