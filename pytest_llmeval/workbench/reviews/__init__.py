"""The page on which people label answers, and the choice of the answers that they label."""
