// SPDX-License-Identifier: Apache-2.0
// Judges facts by rules. Pure; any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "vfmgr/checks/rule.hpp"
#include "vfmgr/machine/facts.hpp"

namespace vfmgr::checks {

[[nodiscard]] CheckReport diagnose(Facts const& facts, std::span<Rule const> rules);

// A complaint of an admin, and the rules that may explain it, first causes first.
struct Symptom {
    std::string_view id;     // "no-vfs"
    std::string_view title;  // "VFs are not created"
    AppliesTo applies = AppliesTo::both;
    std::vector<std::string_view> rules;
};
[[nodiscard]] std::vector<Symptom> const& all_symptoms();

// Returns the findings of the symptom's rules in its order, up to the first that fails: the cause.
// If none fails, returns all of them, warnings too.
[[nodiscard]] CheckReport narrow(CheckReport const& report, Symptom const& symptom);

// Output for people: failures first, then warnings, each with what to type; devices with the same
// fault together; the unknown in one line.
struct Verbosity {
    bool all = false;  // every unknown, what is ok and what is not applicable, too
};
[[nodiscard]] std::string describe(CheckReport const& report, Verbosity verbosity);

}  // namespace vfmgr::checks
