"""What comparing and merging cost: rows and bytes read grow with the change, not with the table."""
