"""Records in text or a cache: UCIFastReader and BinaryReader."""
