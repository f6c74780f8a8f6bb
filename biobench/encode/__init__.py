"""Tokens and character spans: encoding documents into windows, planning batches, decoding
predictions.
"""
