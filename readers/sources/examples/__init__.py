"""Archives of training examples: ExampleReader."""
