gnnstream train store --modle=gcn
