// Hashes of rows that add up: the hash of a row is the sum, modulo 2^64, of what its 8-byte words give at their places,
// so pieces of a row that lie on different ranks give the hash of the whole row without meeting.
#pragma once

#include <cstddef>
#include <cstdint>

namespace msprobe {

inline constexpr size_t kHashWord = 8;  // bytes; a row may be cut between words only

/// Adds the hash of each of `rows` stretches of `bytes` to out[i]. They lie `stride` bytes apart, and begin at word
/// `first_word` of their rows. The last word may be short: zeros follow it.
///
/// NH with two Toeplitz keys, as UMAC has it: keys are fixed, so this finds faults and resists no attacker.
void AddRowHashes(const char* data, size_t rows, int64_t stride, size_t bytes, uint64_t first_word, uint64_t* out);

}  // namespace msprobe
