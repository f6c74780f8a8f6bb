"""The data room: native files in, documents with splits out. Free of torch."""
