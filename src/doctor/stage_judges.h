// The functions of stage_list.def, and what several of them say alike.
#pragma once

#include "doctor/evidence.h"
#include "doctor/stage.h"

namespace msprobe {

#define MSP_STAGE(id, name, en, zh, judge) StageResult judge(const DoctorEvidence& evidence);
#include "doctor/stage_list.def"
#undef MSP_STAGE

/// What the dumps say of a stage, added to `out`: the difference that begins there, or that the steps agree that show
/// it. True where they say anything.
bool AddDumpVerdict(const DoctorEvidence& evidence, StageId stage, StageResult* out);

/// What B gave with inputs of A, at the stage of their step.
void AddGraftLines(const DoctorEvidence& evidence, StageId stage, StageResult* out);

/// `verdict` where it is worse than that of `out`.
void RaiseVerdict(StageVerdict verdict, StageResult* out);

/// The steps to record for what parts, or may part, at `step`: those of the beginning and those around it.
std::vector<int> StepsAround(int step);

/// "loss 3.912 in A, 3.905 in B at step 1 (relative difference 1.8e-03)"
BothWords PointWords(const std::string& en, const std::string& zh, const CurvePoint& point);

/// "the gradients of B are those of A times 2": what multiplies a loss.
BothWords FactorWords(double factor);

/// The first step at which a printed curve parts, or may; -1: none.
int FirstApart(const CurveEvidence& curves);
int FirstUnsure(const CurveEvidence& curves);
/// Losses and norms, of three steps or more.
bool AllStepsAgree(const CurveEvidence& curves);

}  // namespace msprobe
