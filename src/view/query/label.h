#pragma once

#include <string_view>

namespace msprobe::view {

/// The short label of a node: children of the root show their full name, modules their last four segments (five when
/// the fourth from the end is a number, as in `layers.0.Block.forward.0`), operators their last two (three likewise).
std::string_view ShortLabel(std::string_view name, bool is_module, bool child_of_root);

}  // namespace msprobe::view
