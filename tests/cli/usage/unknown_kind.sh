gnnstream generate grid out
