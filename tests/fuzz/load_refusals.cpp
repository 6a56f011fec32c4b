// SPDX-License-Identifier: Apache-2.0
// Any bytes as modprobe's words, the kernel's log, a rule of modprobe and the kernel's command
// line: a refusal always has a rule that there is, a cause and a cure, and its evidence is short;
// what is named as forbidding the module names it.
#include <cstddef>
#include <cstdint>

#include "guest-tools/gpu/load_refusals.hpp"
#include "tests/fuzz/require.hpp"
#include "vfmgr/checks/rule.hpp"

namespace {

using namespace vfmgr;

void require_a_rule(std::string const& id) {
    for (auto const& rule : checks::all_rules())
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
    require(refusal.cure && !refusal.cure->note.empty());
    for (auto const& evidence : refusal.evidence) require(evidence.text.size() <= 300);

    checks::Facts facts;
    facts.looked_for = {"*"};
    facts.files["/etc/modprobe.d/a.conf"].bytes = bytes;
    facts.files["/proc/cmdline"].bytes = bytes;
    std::vector<Finding> hindrances;
    guest::gpu::look_at_kernel(checks::read_machine(facts), "nvidia_peermem", hindrances);
    for (auto const& finding : hindrances) {
        require_a_rule(finding.rule);
        require(bytes.find("peermem") != bytes.npos && finding.cure);
    }
    return 0;
}
