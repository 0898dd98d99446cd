"""From the ledger to the configuration: `planning`, `applying`, and `sweep`, which finishes what was killed."""
