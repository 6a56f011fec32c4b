// SPDX-License-Identifier: Apache-2.0
// Any document as a bundle: an accepted one is written and read as the same facts, removing the
// secrets twice equals removing them once, and every finding has a rule, a detail and, if it is
// bad, a remedy.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "vfmgr/checks/doctor.hpp"
#include "vfmgr/checks/host/rules.hpp"
#include "vfmgr/machine/bundle.hpp"

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    using namespace vfmgr;
    auto const require = [](bool promise) {
        if (!promise) std::abort();
    };
    auto const facts = checks::from_bundle({reinterpret_cast<char const*>(data), size});
    if (!facts) {
        require(!facts.error().detail.empty() && !facts.error().remedy.empty());
        return 0;
    }
    auto const again = checks::from_bundle(checks::to_bundle(*facts));
    require(again && *again == *facts);
    auto const clean = checks::without_secrets(*facts);
    require(checks::without_secrets(clean) == clean);
    for (auto const& finding : checks::diagnose(*facts, checks::all_rules()).findings) {
        bool const bad =
            finding.result == CheckResult::failed || finding.result == CheckResult::warning;
        require(!finding.rule.empty() && !finding.detail.empty() && bad == !!finding.remedy);
    }
    return 0;
}
