gnnstream train store --lr --epochs 3
