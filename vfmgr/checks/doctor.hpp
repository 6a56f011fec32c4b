// SPDX-License-Identifier: Apache-2.0
// Judges facts by all rules. Pure; any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "vfmgr/checks/facts.hpp"
#include "vfmgr/checks/rule.hpp"

namespace vfmgr::checks {

[[nodiscard]] CheckReport diagnose(Facts const& facts);

// What somebody complains about, and the rules that may explain it, first causes first.
struct Symptom {
    std::string_view id;     // "no-vfs"
    std::string_view title;  // "VFs are not created"
    AppliesTo applies = AppliesTo::both;
    std::vector<std::string_view> rules;
};
[[nodiscard]] std::vector<Symptom> const& all_symptoms();

// The findings of the symptom's rules in its order, up to the first that fails: the cause. All of
// them, warnings too, when none fails.
[[nodiscard]] CheckReport narrow(CheckReport const& report, Symptom const& symptom);

// For people: what failed first, then warnings and what is unknown; what is well in one line each.
struct Telling {
    bool all = false;  // what is ok and not applicable, too
};
[[nodiscard]] std::string describe(CheckReport const& report, Telling telling);

}  // namespace vfmgr::checks
