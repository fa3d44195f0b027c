# calc EXPRESSION prints the value of an arithmetic expression with two decimals.
calc() { awk "BEGIN { printf \"%.2f\n\", $1 }"; }

# unknown WHAT fails with a message.
unknown() { echo "unknown unit: $1" >&2; return 1; }
