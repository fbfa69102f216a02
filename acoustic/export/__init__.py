"""Networks in other forms: ONNX models, Graphviz's language, pictures.

Open `onnx_export.py` first.
"""
