// What certify found, as a report of the page that all tools share.
#pragma once

#include "certify/resume_verdict.h"
#include "certify/twice_report.h"
#include "report/document.h"

namespace msprobe {

ReportDocument CertificateDocument(const Certificate& certificate);
ReportDocument ResumeDocument(const ResumeReport& report);
ReportDocument TwiceDocument(const TwiceReport& report);

}  // namespace msprobe
