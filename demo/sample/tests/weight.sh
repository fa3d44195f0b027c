check 4.54 convert_weight 10 lb kg
check 22.05 convert_weight 10 kg lb
check 28.35 convert_weight 1 oz g
check "unknown unit: stone" convert_weight 1 stone kg
