"""Every node type, one family per module; importing this package registers them all."""
