"""Analysis of finished models: hidden states, CKA, transplants, figures."""
