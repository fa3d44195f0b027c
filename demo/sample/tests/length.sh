check 0.91 convert_length 3 ft m
check 9.84 convert_length 3 m ft
check 1.61 convert_length 1 mi km
check "unknown unit: parsec" convert_length 1 parsec m
