// How the first difference is wrong: the item where it begins against all that is known of it.
#pragma once

#include "diagnose/anatomy/anatomy.h"
#include "diagnose/anatomy/evidence.h"

namespace msprobe {

/// What cannot be read explains nothing.
Anatomy ExplainOrigin(const OriginEvidence& evidence, const AnatomyContext& context);

}  // namespace msprobe
