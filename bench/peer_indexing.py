"""LangChain on Chroma, and LlamaIndex, over a folder of texts; both keep state and skip what they know.

    python -m bench.peer_indexing langchain|llamaindex CORPUS STATE

Run in the environment of the peers: it needs nothing of ours. The last line is one JSON object: seconds,
docs, stored. Imports are not in the seconds, loading and saving of the state are.
"""

import hashlib
import json
import sys
import time
from pathlib import Path

SIZE = 1000
BATCH = 100


def vector(text: str) -> list[float]:
    """256 numbers out of a hash: an embedder that costs about nothing."""
    return [float(byte) for byte in hashlib.blake2b(text.encode(), digest_size=64).digest() * 4]


def langchain(corpus: Path, state: Path) -> tuple[float, int, int]:
    """`index()` with a record manager, incremental, into Chroma."""
    from langchain_chroma import Chroma  # noqa: PLC0415
    from langchain_classic.indexes import SQLRecordManager, index  # noqa: PLC0415
    from langchain_core.documents import Document  # noqa: PLC0415
    from langchain_core.embeddings import Embeddings  # noqa: PLC0415
    from langchain_text_splitters import RecursiveCharacterTextSplitter  # noqa: PLC0415

    class Hash(Embeddings):
        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            return [vector(text) for text in texts]

        def embed_query(self, text: str) -> list[float]:
            return vector(text)

    began = time.perf_counter()
    records = SQLRecordManager("bench", db_url=f"sqlite:///{state}/records.db")
    records.create_schema()
    store = Chroma("bench", Hash(), persist_directory=str(state / "chroma"))
    splitter = RecursiveCharacterTextSplitter(chunk_size=SIZE, chunk_overlap=0)
    found = [Document(path.read_text(), metadata={"source": path.name}) for path in sorted(corpus.iterdir())]
    pieces = splitter.split_documents(found)
    index(
        pieces,
        records,
        store,
        cleanup="incremental",
        source_id_key="source",
        batch_size=BATCH,
        key_encoder="sha256",
    )
    took = time.perf_counter() - began
    return took, len(found), len(store.get(include=[])["ids"])


def llamaindex(corpus: Path, state: Path) -> tuple[float, int, int]:
    """An ingestion pipeline with a document store and a cache, saved at the end."""
    from llama_index.core import Document  # noqa: PLC0415
    from llama_index.core.embeddings import BaseEmbedding  # noqa: PLC0415
    from llama_index.core.ingestion import DocstoreStrategy, IngestionPipeline  # noqa: PLC0415
    from llama_index.core.node_parser import SentenceSplitter  # noqa: PLC0415
    from llama_index.core.storage.docstore import SimpleDocumentStore  # noqa: PLC0415
    from llama_index.core.vector_stores import SimpleVectorStore  # noqa: PLC0415

    class Hash(BaseEmbedding):
        def _get_text_embedding(self, text: str) -> list[float]:
            return vector(text)

        def _get_query_embedding(self, query: str) -> list[float]:
            return vector(query)

        async def _aget_query_embedding(self, query: str) -> list[float]:
            return vector(query)

    began = time.perf_counter()
    vectors = state / "vectors.json"
    known = SimpleVectorStore.from_persist_path(str(vectors)) if vectors.exists() else SimpleVectorStore()
    pipeline = IngestionPipeline(
        transformations=[SentenceSplitter(chunk_size=256, chunk_overlap=0), Hash(embed_batch_size=BATCH)],
        docstore=SimpleDocumentStore(),
        docstore_strategy=DocstoreStrategy.UPSERTS,
        vector_store=known,
    )
    if (state / "pipeline").exists():
        pipeline.load(str(state / "pipeline"))
    found = [Document(text=path.read_text(), id_=path.name) for path in sorted(corpus.iterdir())]
    pipeline.run(documents=found)
    pipeline.persist(str(state / "pipeline"))
    known.persist(str(vectors))
    return time.perf_counter() - began, len(found), len(known.data.embedding_dict)


PEERS = {"langchain": langchain, "llamaindex": llamaindex}


def main(peer: str, corpus: str, state: str) -> None:
    """One pass over the folder."""
    Path(state).mkdir(parents=True, exist_ok=True)
    seconds, docs, stored = PEERS[peer](Path(corpus), Path(state))
    print(json.dumps({"seconds": seconds, "docs": docs, "stored": stored}))


if __name__ == "__main__":
    main(*sys.argv[1:])
