// `msprobe doctor A B` and `msprobe preflight A`: what is left of two trainings, or of one, looked at stage by stage.
#pragma once

#include <string>
#include <vector>

#include "doctor/diagnosis.h"
#include "doctor/evidence.h"
#include "report/document.h"

namespace msprobe {

struct DoctorRequest {
  std::vector<std::string> a, b;                // directories and files of the reference, and of the run in question
  std::vector<std::vector<std::string>> again;  // further runs of the reference
  std::string output;
  std::string graft;  // a module that B is to run with the inputs of A; "" for none
};

struct DoctorReport {
  DoctorEvidence evidence;
  Diagnosis diagnosis;
  std::vector<std::string> files;  // written
};

/// Writes msprobe_doctor.json and msprobe_doctor.html, and the comparisons of dumps, to the output.
StatusOr<DoctorReport> RunDoctor(const DoctorRequest& request);

std::string DoctorText(const DoctorReport& report, Language language);
std::string DoctorJson(const DoctorReport& report);
/// For the page that all reports share, in both languages.
ReportDocument DoctorDocument(const DoctorReport& report);

}  // namespace msprobe
