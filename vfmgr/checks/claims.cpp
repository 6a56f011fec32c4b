// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/checks/claims.hpp"

#include <algorithm>

namespace vfmgr::checks {
void limit_claims(Relatives const& relatives, RestsOn rests_on, std::vector<Unknown> const& unread,
                  std::vector<Finding>& findings) {
    auto const concerns = [&](Unknown const& what, Finding const& finding) {
        return finding.subject.empty() || rests_on == RestsOn::all_devices ||
               relatives.concerns(what.source, finding.subject);
    };
    for (auto& finding : findings) {
        if (is_bad(finding) || finding.result == CheckResult::unknown) continue;
        auto const missing = std::ranges::find_if(
            unread, [&](Unknown const& what) { return concerns(what, finding); });
        if (missing != unread.end()) finding = unknown(finding.subject, *missing);
    }
    // A rule leaves out a device or a fault that it can't see.
    for (auto const& what : unread)
        if (std::ranges::none_of(findings, [&](Finding const& finding) {
                return finding.result == CheckResult::unknown && concerns(what, finding);
            }))
            findings.push_back(unknown(device_in(what.source), what));
}

}  // namespace vfmgr::checks
