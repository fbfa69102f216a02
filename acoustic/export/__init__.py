"""Networks for other programs and for people: ONNX models, Graphviz's language, pictures.

Open onnx_export.py first.
"""
