gnnstream train store
