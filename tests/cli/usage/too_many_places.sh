gnnstream info store other
