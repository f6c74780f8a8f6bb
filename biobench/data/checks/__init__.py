"""What is looked for in documents: findings, edges of mentions, texts that are the same."""
