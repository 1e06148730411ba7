"""Readers of label formats, one small module each; every one answers a list of `Sample`."""
