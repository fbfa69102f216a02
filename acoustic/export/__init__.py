"""Networks as ONNX models and as drawings."""
