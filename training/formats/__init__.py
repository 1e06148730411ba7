"""Label formats, one small module each: every one is read as a `DataSet`, and most are written too."""
