// SPDX-License-Identifier: Apache-2.0
// The opposite of the other suites: where a recording shows a fault, no rule about it may say "ok",
// nor keep silent. The table is what the recordings' README calls notable.
#include <algorithm>
#include <map>

#include "tests/unit/recordings/recordings.hpp"
#include "vfmgr/machine/driver_log.hpp"

namespace vfmgr::checks::recordings {
namespace {

struct Shown {
    char const* log;
    char const* device;              // that has the fault; "": none, or the whole machine
    std::vector<char const*> rules;  // of which at least one reports it, and none says "ok"
};

std::vector<Shown> const faults{
    {"amdvi-io-page-fault-mlx5-wc-error4.txt", "0000:c1:00.0", {"log.iommu_fault"}},
    {"bluerdma-symbol-version-ofed.txt", "", {"stack.symbols"}},
    {"gpu-host-full-dmesg.txt.gz", "0000:1b:00.1", {"log.mlx5", "port.cable"}},
    {"gpu-host-full-dmesg.txt.gz", "0000:9d:00.1", {"log.mlx5", "port.cable"}},
    {"igb-bus-number-out-of-range.txt", "0000:07:00.0", {"sriov.resources"}},
    {"ixgbe-not-enough-mmio.txt", "0000:04:00.0", {"sriov.resources"}},
    {"mlx4-missing-uar.txt", "0000:01:00.0", {"log.mlx5"}},
    {"mlx5-cx4-ipoib-alloc-failed.txt", "0000:01:00.0", {"log.mlx5"}},
    {"mlx5-enable-hca-timeout-and-rev-ff-vfs.txt", "0000:0b:06.0", {"sriov.resources"}},
    {"mlx5-lines-real-and-near-misses.txt", "0000:5c:00.0", {"log.mlx5"}},
    {"mlx5-recreate-vfs-fails-iommu.txt", "0000:81:00.2", {"sriov.resources"}},
    {"mlx5-second-pf-unknown-header-7f.txt", "0000:01:00.1", {"sriov.resources"}},
    {"mlx5-vf-bar-no-space-and-iomem.txt", "0006:03:00.0", {"sriov.resources"}},
    {"peermem-invalid-context-dmesg.txt", "", {"log.peermem"}},
    {"peermem-invalid-context-kmsg.txt", "", {"log.peermem"}},
    {"peermem-invalid-context-mixed.txt", "", {"log.peermem"}},
    {"peermem-symbol-version.txt", "", {"stack.symbols"}},
    {"pstore-crash-dmesg-mlx5.txt", "", {"log.crash"}},
    {"rxe-kernel-lines.txt", "", {"stack.symbols"}},
};

// A machine with the PFs that the log speaks of. VFs are gone, as after a failure.
Facts machine_of(std::string const& text) {
    std::map<std::string, Function> functions;
    auto const log = parse_kernel_log(text);
    for (auto const& line : log.lines) {
        auto const said = parse_device_line(line.text);
        if (!said || said->driver == "pcieport") continue;
        auto pf = said->device;
        bool const vf = pf.function > 1 || pf.device > 0;
        if (vf) pf.device = 0;
        if (vf) pf.function = 0;
        auto& function = functions[to_string(pf)];
        function.address = to_string(pf);
        if (said->driver != "pci") function.driver = said->driver;
        function.total_vfs = 8;
        if (function.driver == "igb" || function.driver == "ixgbe") function.vendor = 0x8086;
    }
    std::vector<Function> all;
    for (auto& [address, function] : functions) all.push_back(std::move(function));
    return machine_with(all, text);
}

class Contradictions : public Recordings {};

TEST_F(Contradictions, NoOkOfWhatARecordingShows) {
    for (auto const& [name, device, rules] : faults) {
        auto text = content(std::string("05-kernel-log/") + name);
        // This one ends with the log of a kernel that does it right.
        if (auto const good = text.find("On previous patch"); good != text.npos) text.resize(good);
        auto const facts = machine_of(text);
        auto const report = diagnose(facts, all_rules());
        bool reported = false;
        for (auto const& finding : report.findings) {
            bool const asked = std::ranges::find(rules, finding.rule) != rules.end();
            bool const about_it = finding.subject.empty() || finding.subject == device ||
                                  finding.detail.find(device) != std::string::npos;
            if (!asked || !about_it) continue;
            EXPECT_NE(finding.result, CheckResult::ok)
                << name << " " << device << ": " << finding.rule << " " << finding.detail;
            reported |= is_bad(finding) || !finding.evidence.empty();
        }
        EXPECT_TRUE(reported) << name << " " << device;
    }
}

}  // namespace
}  // namespace vfmgr::checks::recordings
