#include "jobs/configuration/round_trip_program.h"

#include "base/embed.h"

MSPROBE_EMBED(round_trip, MSPROBE_PROGRAM_FILE);

namespace msprobe {

std::string_view RoundTripProgram() { return MSPROBE_EMBEDDED(round_trip); }

}  // namespace msprobe
