python3 a --n 'b
