// `msprobe curves A B [A2 ...]`: are the curves of two trainings as near as two runs of the same one?
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/message.h"
#include "base/status.h"
#include "curves/curve.h"
#include "curves/judge.h"
#include "report/document.h"

namespace msprobe {

struct CurvesRequest {
  std::string a, b;
  std::vector<std::string> more_a;  // further runs of A, for the golden band
  CurveNames names;
  int64_t shift = 0;   // added to the steps of B
  std::string output;  // directory of curves.json and curves.html; "" writes none
};

struct CurvesResult {
  RunCurves a, b;
  std::vector<RunCurves> more_a;
  std::vector<ComparedCurve> curves;  // those that both have, the loss first
  CurveJudgement judgement;
  std::vector<Message> notes;      // of reading and pairing
  std::vector<std::string> files;  // written

  bool fine() const { return IsFine(judgement.verdict); }
  const ComparedCurve* Find(CurveKind kind) const;
};

/// kBadInput for a file without a loss, and for runs without a common step; kUsage for a pattern that is none.
StatusOr<CurvesResult> CompareCurveFiles(const CurvesRequest& request);

std::string CurvesJson(const CurvesResult& result);
/// The verdict, the rules with what was found, and with `plots` the curves drawn with characters.
Message CurvesText(const CurvesResult& result, bool plots);
/// For the page that all reports share, in both languages.
ReportDocument CurvesDocument(const CurvesResult& result);

}  // namespace msprobe
