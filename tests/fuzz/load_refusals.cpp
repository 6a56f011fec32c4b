// SPDX-License-Identifier: Apache-2.0
// Any bytes as modprobe's output, the kernel's log, a modprobe rule and the kernel's command line:
// a refusal always has an existing rule, a cause and a remedy, and its evidence is short; a finding
// that the module is forbidden requires its name in the text.
#include <cstddef>
#include <cstdint>

#include "guest-tools/gpu/load_peermem.hpp"
#include "tests/fuzz/require.hpp"
#include "vfmgr/checks/rule.hpp"

namespace {

using namespace vfmgr;

void require_a_rule(std::string const& id) {
    for (auto const& rule : checks::common_rules())
        if (rule.id == id) return;
    require(false);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    std::string_view const bytes(reinterpret_cast<char const*>(data), size);
    auto const half = bytes.find('\0');
    auto const first = bytes.substr(0, half);
    std::vector<std::string> const logged{half == bytes.npos ? std::string()
                                                             : std::string(bytes.substr(half + 1))};
    auto const refusal = guest::gpu::explain_refusal("nvidia_peermem", first, logged);
    require_a_rule(refusal.rule);
    require(refusal.detail.starts_with("nvidia_peermem did not load"));
    require(refusal.remedy && !refusal.remedy->note.empty());
    for (auto const& evidence : refusal.evidence) require(evidence.text.size() <= 300);

    checks::Facts facts;
    facts.patterns = {"*"};
    facts.files["/etc/modprobe.d/a.conf"].bytes = bytes;
    facts.files["/proc/cmdline"].bytes = bytes;
    std::vector<Finding> hindrances;
    guest::gpu::check_kernel(checks::read_machine(facts), "nvidia_peermem", hindrances);
    for (auto const& finding : hindrances) {
        require_a_rule(finding.rule);
        require(bytes.find("peermem") != bytes.npos && finding.remedy);
    }
    return 0;
}
