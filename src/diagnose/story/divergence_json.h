// What the ranks of a step say together, for programs.
#pragma once

namespace msprobe {

class JsonWriter;
struct Divergence;

/// The members of first_divergence.json, into an open object; see docs/en/compare/first_divergence.md.
void DivergenceMembers(JsonWriter* json, const Divergence& d);

}  // namespace msprobe
