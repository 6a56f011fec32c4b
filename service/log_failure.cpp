// SPDX-License-Identifier: Apache-2.0
#include "service/log_failure.hpp"

#include "service/log.hpp"

namespace vfmgr {

void log_violations(Error const& error) {
    for (auto const& violation : error.violations)
        log(Severity::error, violation.detail, {{"at", violation.pointer}});
}

void log_failure(std::string_view message, Error const& error) {
    log(Severity::error, message,
        {{"detail", detail_with_causes(error)}, {"remedy", error.remedy}});
    log_violations(error);
}

int failed(Error const& error) {
    log(Severity::error, error.detail, {{"remedy", error.remedy}});
    log_violations(error);
    return 1;
}

}  // namespace vfmgr
