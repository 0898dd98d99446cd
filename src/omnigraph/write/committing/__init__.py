"""From a staged change to a commit: `entry` (what is known of the branch), `revalidation` and `rebasing` (does the
change still fit), `phases` (the durable steps), `outcomes` (what became of a write that failed)."""
