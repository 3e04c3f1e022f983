gnnstream trian store
