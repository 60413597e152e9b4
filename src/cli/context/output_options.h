// --ranks and --out-limit, which mean the same in each command that writes for many ranks.
#pragma once

#include <cstdint>
#include <string>

namespace CLI {
class App;
}

namespace msprobe {

void AddOutputBound(CLI::App* command, std::string* ranks, uint64_t* limit);

}  // namespace msprobe
