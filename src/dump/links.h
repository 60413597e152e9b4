// Links in a dump that lead nowhere.
#pragma once

#include <string>

#include "base/status.h"

namespace msprobe {

/// A link to something that is not there; Missing() says so.
bool IsBrokenLink(const std::string& path);

/// kBadInput that names the first step, rank or dump.json of the dump, step or rank `directory` that is such a link:
/// the others would be taken for the whole run.
Status CheckDumpLinks(const std::string& directory);

}  // namespace msprobe
