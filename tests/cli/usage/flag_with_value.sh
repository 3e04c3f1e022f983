gnnstream info store --json=yes
