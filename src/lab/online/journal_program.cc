#include "base/embed.h"
#include "lab/online/online_programs.h"

MSPROBE_EMBED(online_journal, MSPROBE_PROGRAM_FILE);

namespace msprobe {

std::string_view OnlineJournalProgram() { return MSPROBE_EMBEDDED(online_journal); }

}  // namespace msprobe
