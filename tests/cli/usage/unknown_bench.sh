gnnstream bench limit
