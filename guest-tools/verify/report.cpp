// SPDX-License-Identifier: Apache-2.0
#include "guest-tools/verify/report.hpp"

#include <fmt/format.h>

namespace vfmgr::verify {
namespace {

std::string figure(TestResult const& test, char const* name, std::string_view unit) {
    auto const found = test.figures.find(name);
    if (found == test.figures.end()) return {};
    return fmt::format("{:.4g} {}", found->second, unit);
}

std::string figures(TestResult const& test) {
    if (test.figures.contains("bandwidth_mbps"))
        return fmt::format("{} ({})", figure(test, "bandwidth_mbps", "Mbit/s"),
                           figure(test, "bandwidth_mib_per_s", "MiB/s"));
    if (test.figures.contains("p50_us"))
        return fmt::format("p50 {}, p99 {}, max {}, {}", figure(test, "p50_us", "us"),
                           figure(test, "p99_us", "us"), figure(test, "max_us", "us"),
                           figure(test, "samples", "samples")) +
               (test.figures.contains("lost") ? ", " + figure(test, "lost", "lost") : "");
    if (test.figures.contains("mtu_bytes")) return "MTU " + figure(test, "mtu_bytes", "bytes");
    if (test.figures.contains("round_trip_min_us"))
        return "round trip " + figure(test, "round_trip_min_us", "us");
    return {};
}

std::string line(TestResult const& test) {
    auto text = fmt::format("  {:<24} {:<14} by {:<5}  {:>8} bytes checked, {} wrong", test.name,
                            enum_name(test.verdict), enum_name(test.by), test.bytes_checked,
                            test.mismatches);
    if (auto const shown = figures(test); !shown.empty()) text += "   " + shown;
    text += '\n';
    if (!test.detail.empty()) text += fmt::format("    {}\n", test.detail);
    if (!test.remedy.empty()) text += fmt::format("    remedy: {}\n", test.remedy);
    return text;
}

}  // namespace

std::string describe(Verification const& verification) {
    auto text = fmt::format("attachment {}: {}\n", verification.attachment,
                            enum_name(verification.verdict));
    if (verification.tests.empty() && !verification.detail.empty())
        text += fmt::format("  {}\n  remedy: {}\n", verification.detail, verification.remedy);
    for (auto const& test : verification.tests) text += line(test);
    for (auto const& loss : verification.losses)
        text += fmt::format("  lost: {}\n    remedy: {}\n", loss.detail, loss.remedy);
    for (auto const& warning : verification.warnings)
        text += fmt::format("  warning: {}\n    remedy: {}\n", warning.detail, warning.remedy);
    text += fmt::format("  path: {}\n",
                        verification.path ? enum_name(*verification.path) : "not known");
    if (verification.dscp) text += fmt::format("  DSCP: {}\n", *verification.dscp);
    if (verification.responder) text += fmt::format("  responder: {}\n", *verification.responder);
    return text;
}

}  // namespace vfmgr::verify
