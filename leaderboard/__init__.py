"""The Streamlit leaderboard: views over `biobench.report`, with no statistics of their own. Free of
torch.
"""
