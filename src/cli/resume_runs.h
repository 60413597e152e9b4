// The runs of `certify --resume` and `certify --twice`, and what is made of them.
#pragma once

#include <string>

#include "base/status.h"
#include "cli/commands.h"
#include "cli/context/command_context.h"
#include "cli/launch/launch.h"

namespace msprobe {

struct ResumeArgs {
  std::string out;
  std::string resume_args;     // appended to the command when it is started again
  std::string resume_command;  // instead of the command with them
};

/// Trains straight, kills a second run after it has saved, resumes it, and says which state was not restored.
Status CertifyResume(AttachRequest request, const ResumeArgs& args, const CommandContext& context);

/// Trains twice with capture and says which op was the first to compute something else.
Status CertifyTwice(AttachRequest request, const std::string& out, const CommandContext& context);

}  // namespace msprobe
