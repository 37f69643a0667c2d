PROFILES={}
def cores(): return 2
