"""Which graph a command works on: `options` and `capabilities` are what a user may say, `config` and `credentials`
what the operator has written down, and `target` makes one target of both."""
