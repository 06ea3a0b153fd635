"""Calls as others show them: spans, transcripts, protocol logs; read into executions.

Pure: bytes or plain values in, executions or the reason for none out. Their texts are data.
"""
