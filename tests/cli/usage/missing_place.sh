gnnstream partition graph
