f() { f; f; }
f
