#include "cli/commands.h"

int main(int argc, char** argv) { return msprobe::RunCommand({argv + 1, argv + argc}); }
