"""The page Findings, card by card: the list, where the error enters, which side, why, what next."""
