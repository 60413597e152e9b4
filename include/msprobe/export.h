// Marks what libmsprobe shows to programs that link it.
#pragma once

#define MSPROBE_API __attribute__((visibility("default")))
