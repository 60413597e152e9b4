// The modules of the process that takes calls of trainings, python/msprobe/_online_*.py.
#pragma once

#include <string_view>

namespace msprobe {

std::string_view OnlineWireProgram();
std::string_view OnlineCallsProgram();
std::string_view OnlineJournalProgram();
std::string_view OnlineTlsProgram();

}  // namespace msprobe
