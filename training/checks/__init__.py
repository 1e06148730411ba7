"""What is wrong with a labelled set: pictures, labels, references, splits. Start at `check.run_check`."""
