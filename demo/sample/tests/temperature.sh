check 68.00 convert_temperature 20 c f
check 37.78 convert_temperature 100 f c
check 273.15 convert_temperature 0 c k
check "unknown unit: x" convert_temperature 1 x c
