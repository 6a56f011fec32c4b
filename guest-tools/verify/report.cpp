// SPDX-License-Identifier: Apache-2.0
#include "guest-tools/verify/report.hpp"

#include <fmt/format.h>

namespace vfmgr::verify {

std::string describe(Verification const& verification, Figures shown) {
    auto text = fmt::format("attachment {}: {}\n", verification.attachment,
                            enum_name(verification.verdict));
    if (verification.tests.empty() && !verification.detail.empty())
        text += fmt::format("  {}\n  remedy: {}\n", verification.detail, verification.remedy);
    text += test_lines(verification.tests, shown);
    for (auto const& loss : verification.losses)
        text += fmt::format("  warning: {}\n    remedy: {}\n", loss.detail, loss.remedy);
    for (auto const& warning : verification.warnings)
        text += fmt::format("  warning: {}\n    remedy: {}\n", warning.detail, warning.remedy);
    text +=
        fmt::format("  path: {}\n", verification.path ? enum_name(*verification.path) : "unknown");
    if (verification.dscp) text += fmt::format("  DSCP: {}\n", *verification.dscp);
    if (verification.responder) text += fmt::format("  responder: {}\n", *verification.responder);
    return text;
}

}  // namespace vfmgr::verify
