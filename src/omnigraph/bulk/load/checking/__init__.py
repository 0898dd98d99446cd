"""What is wrong with staged rows: `checks`, run by `validation`, then `origins` and `bad_records`."""
