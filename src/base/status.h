// Errors as values. Inside the library nothing throws on purpose; the Python edge and the command turn a Status into an
// exception or an exit code.
#pragma once

#include <msprobe/status.h>

namespace msprobe {

Status Interrupted();

}  // namespace msprobe

#define MSP_CONCAT_INNER(a, b) a##b
#define MSP_CONCAT(a, b) MSP_CONCAT_INNER(a, b)
#define MSP_RETURN_IF_ERROR(expr)                                    \
  do {                                                               \
    if (::msprobe::Status msp_s = (expr); !msp_s.ok()) return msp_s; \
  } while (0)
#define MSP_ASSIGN_OR_RETURN(lhs, expr) MSP_ASSIGN_INNER(MSP_CONCAT(msp_v, __LINE__), lhs, expr)
#define MSP_ASSIGN_INNER(tmp, lhs, expr) \
  auto tmp = (expr);                     \
  if (!tmp.ok()) return tmp.status();    \
  lhs = std::move(*tmp)
