check 0.91 sh pocket.sh length 3 ft m
check 4.54 sh pocket.sh weight 10 lb kg
check 68.00 sh pocket.sh temperature 20 c f
check "usage: pocket.sh length|weight|temperature VALUE FROM TO" sh pocket.sh
