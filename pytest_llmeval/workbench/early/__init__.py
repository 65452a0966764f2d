"""Early stops: runs that end once their gates are decided."""
