// The parts of a tensor on the ranks that have it, and where these ranks stand in the layout.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "parity/place.h"

namespace msprobe {

/// The ranks that have a tensor. What placements call a sum over ranks is added up.
RankParts PartsOf(const ParityRun& run, int step, const std::string& phase, const std::string& name);

bool SameBytes(const ParityEntry& a, const ParityEntry& b);

/// The parameter of another stage of the pipeline that one is a copy of, in every bit on each of its ranks: a tied
/// weight has a second name on the last stage. Empty if there is none.
std::string CopyOf(const ParityRun& run, int step, const std::string& name);
/// Ranks on which a parameter is not, in every bit, what its other stage has.
std::vector<int> NotAsOn(const ParityRun& run, int step, const std::string& phase, const std::string& copy,
                         const std::string& name);

/// Of what several stages of a pipeline have under one name, such as the list of layers, the last one has the result.
RankParts OfLastStage(RankParts parts);
/// The stage of a pipeline that has a tensor: of several the first.
int StageOf(const RankParts& parts);

/// Whether ranks along an axis have rows of their own: all axes but those of one model.
bool IsDataAxis(std::string_view axis);
/// Ranks of one such place have the same rows and the same stretch of the sequence.
std::string DataPlaceOf(const ParityRank& rank);
/// Whether two ranks have the same place along all axes but these.
bool SameBut(const ParityRank& a, const ParityRank& b, const std::vector<std::string>& axes);

}  // namespace msprobe
