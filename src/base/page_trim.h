// Keeps large read-only maps from filling the memory of the process: their pages are the kernel's anyway.
#pragma once

#include <cstddef>

namespace msprobe {

/// Input files of this size and more are watched.
inline constexpr size_t kTrimmedMapBytes = size_t{32} << 20;

/// While a map is watched and the process holds more than a bound of pages of files, these are given back; whoever
/// reads on takes them from the kernel's cache again.
void WatchMap(const char* data, size_t size);
/// The same look at once, for loops that pass over a whole file faster than a thread looks: at each so many steps.
void TrimMaps();
inline constexpr size_t kStepsBetweenTrims = 256;
/// Before the map goes.
void UnwatchMap(const char* data);

}  // namespace msprobe
