"""Making two tensors comparable: steps proposed by shape, checked by error, read in parts."""
