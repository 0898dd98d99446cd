"""Recovery: what a dead writer left behind is finished or undone by whoever comes next."""
