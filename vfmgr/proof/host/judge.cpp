// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/proof/host/judge.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <tuple>

#include "vfmgr/proof/echo.hpp"
#include "vfmgr/proof/host/judge_partition.hpp"
#include "vfmgr/proof/measure.hpp"
#include "vfmgr/rdma/counters.hpp"
#include "vfmgr/rdma/device.hpp"

namespace vfmgr::verify {
namespace {

constexpr std::size_t figures_max = 16;
constexpr std::size_t figure_name_max = 40;
constexpr std::string_view hosts_figures = "achie";  // achievable_mbps, achieved_percent
constexpr std::size_t guest_text_max = 900;          // gpudirect explains three routes

struct Case {
    SessionPermit const& permit;
    SessionFacts const& facts;
    GuestReport const& report;
};

TestResult const* claim(Case const& c, std::string_view name) {
    auto const found = std::ranges::find(c.report.tests, name, &TestResult::name);
    return found == c.report.tests.end() ? nullptr : &*found;
}

std::string digest(Case const& c, std::string const& name) {
    auto const found = c.report.digests.find(name);
    return found == c.report.digests.end() ? std::string() : found->second;
}

bool is_figure(std::string const& name, double value) {
    auto const letter = [](char ch) {
        return (ch >= 'a' && ch <= 'z') || (ch >= '0' && ch <= '9') || ch == '_';
    };
    return !name.empty() && name.size() <= figure_name_max && std::ranges::all_of(name, letter) &&
           std::isfinite(value) && value >= 0 && !name.starts_with(hosts_figures);
}

// A test judged by the host, with the guest's figures beside it.
TestResult start(Case const& c, std::string_view name) {
    TestResult result;
    result.name = name;
    result.verdict = Verdict::pass;
    result.by = Judge::host;
    if (auto const* claimed = claim(c, name))
        for (auto const& [figure, value] : claimed->figures)
            if (is_figure(figure, value) && result.figures.size() < figures_max)
                result.figures[figure] = value;
    return result;
}

std::string and_refused(EchoFacts const& facts) {
    return facts.refused.empty() ? std::string() : "; " + facts.refused;
}

void failed(Case const& c, TestResult& result, std::string detail, std::string remedy) {
    result.verdict = Verdict::fail;
    result.detail = std::move(detail);
    result.remedy = std::move(remedy);
    auto const* claimed = claim(c, result.name);
    if (claimed && !claimed->detail.empty()) {
        result.detail +=
            fmt::format("; the guest reports: {}", printable(claimed->detail, guest_text_max));
        if (!claimed->remedy.empty()) result.remedy = printable(claimed->remedy, guest_text_max);
    } else if (claimed && claimed->verdict == Verdict::pass) {
        result.detail += "; the guest claims a pass";
    }
    if (!c.facts.device_error.empty()) {
        result.detail += "; the host's device: " + c.facts.device_error;
        result.remedy = c.facts.device_remedy;
    }
}

constexpr char const* cheated =
    "use vf-guest of the host's version; a report without the traffic is never accepted";

void judge_reachability(Case const& c, TestResult& result) {
    auto const& facts = c.facts.reachability;
    result.bytes_checked = facts.bytes_max;
    if (facts.datagrams == 0)
        failed(c, result,
               fmt::format("no datagram of this run came from {} on {}",
                           to_string(c.permit.peer_address), c.permit.host_netdev),
               "check the VF's carrier, VLAN and address in the VM");
    else if (digest(c, result.name) != facts.answer_digest)
        failed(c, result,
               fmt::format("the host's answers to {} did not arrive: the guest's digest of them is "
                           "wrong or missing{}",
                           to_string(c.permit.peer_address), and_refused(facts)),
               "check that the VF in the VM has the " + identity_of(c.permit));
}

void judge_path_mtu(Case const& c, TestResult& result) {
    auto const& facts = c.facts.path_mtu;
    auto const expected = full_datagram_bytes(c.permit.mtu, c.permit.peer_address.family);
    result.bytes_checked = facts.bytes_max;
    result.figures["mtu_bytes"] = c.permit.mtu;
    if (facts.bytes_max < expected)
        failed(
            c, result,
            fmt::format("no datagram of {} bytes (MTU {}) came from {}: the longest had {} bytes",
                        expected, c.permit.mtu, to_string(c.permit.peer_address), facts.bytes_max),
            fmt::format("set MTU {} on the VF, its PF and every switch between", c.permit.mtu));
    else if (digest(c, result.name) != facts.answer_digest)
        failed(c, result,
               fmt::format("the host's answer of {} bytes did not arrive at {}{}", expected,
                           to_string(c.permit.peer_address), and_refused(facts)),
               fmt::format("set MTU {} on {} and its PF", c.permit.mtu, c.permit.host_netdev));
}

void judge_ping(Case const& c, TestResult& result) {
    auto const& f = c.facts;
    result.bytes_checked = f.ping_check.bytes_checked;
    result.mismatches = f.ping_check.mismatches;
    if (f.pings < f.pings_expected)
        failed(c, result,
               fmt::format("the host received {} of {} RC sends", f.pings, f.pings_expected),
               c.permit.vf_guid ? "check LID and subnet manager of both ports: ibv_devinfo -v"
                                : "check that no firewall drops UDP port 4791 in the VM");
    else if (f.ping_check.mismatches != 0)
        failed(c, result,
               fmt::format("{} of {} bytes of the RC sends differ: {}", f.ping_check.mismatches,
                           f.ping_check.bytes_checked, f.ping_check.detail),
               "verify again; if bytes differ again, suspect memory, IOMMU or NIC");
    else if (digest(c, result.name) != f.answer_digest)
        failed(
            c, result,
            fmt::format("the guest's digest of the host's {} answers is wrong or missing", f.pings),
            cheated);
}

void judge_write(Case const& c, TestResult& result) {
    auto const& checked = c.facts.write_check;
    result.bytes_checked = checked.bytes_checked;
    result.mismatches = checked.mismatches;
    if (checked.untouched)
        failed(c, result,
               fmt::format(
                   "no RDMA write arrived: all {} bytes of the host's MR are as the host left them",
                   checked.bytes_checked),
               cheated);
    else if (checked.mismatches != 0)
        failed(c, result,
               fmt::format("{} of {} bytes written differ: {}", checked.mismatches,
                           checked.bytes_checked, checked.detail),
               "verify again; if bytes differ again, suspect memory, IOMMU or NIC");
    else if (!c.facts.write_notified)
        failed(c, result, "the last RDMA write came without its notification", cheated);
}

void judge_read(Case const& c, TestResult& result) {
    auto const given = digest(c, result.name);
    if (given.empty())
        return failed(c, result, "the guest sent no digest of the bytes that it had to read",
                      cheated);
    result.bytes_checked = c.facts.read_bytes;
    if (given == c.facts.read_digest) return;
    result.mismatches = 1;  // at least one: a digest does not show how many
    failed(c, result,
           fmt::format("the guest's digest of the {} bytes that it had to read is wrong",
                       c.facts.read_bytes),
           "verify again; if bytes differ again, suspect memory, IOMMU or NIC");
}

// The host's judgement of each proof.
struct Judgement {
    Proof proof;
    void (*apply)(Case const&, TestResult&);
};
constexpr std::array<Judgement, 5> judgements{{{Proof::reachability, judge_reachability},
                                               {Proof::path_mtu, judge_path_mtu},
                                               {Proof::rc_ping, judge_ping},
                                               {Proof::rdma_write, judge_write},
                                               {Proof::rdma_read, judge_read}}};

void judge_proofs(Case const& c, Verification& verification) {
    for (auto const& [proof, apply] : judgements) {
        auto& result = verification.tests.emplace_back();
        if (needs_rdma(proof) && c.permit.rdma == RdmaMode::none) {
            result.name = enum_name(proof);
            result.verdict = Verdict::not_applicable;
            result.by = Judge::host;
            result.detail = "the network has rdma: none";
            continue;
        }
        result = start(c, enum_name(proof));
        apply(c, result);
    }
}

// The host found out what the guest did not say.
void refute(TestResult& result, std::string detail, std::string remedy) {
    result.by = Judge::host;
    result.verdict = Verdict::fail;
    result.detail = std::move(detail);
    result.remedy = std::move(remedy);
}

StreamFacts streamed(Case const& c, StreamKind kind) {
    auto const found = c.facts.streamed.find(kind);
    return found == c.facts.streamed.end() ? StreamFacts() : found->second;
}

// The figures come from the guest. The host judges that as many messages were answered.
TestResult judge_figures(Case const& c, Measurement const& measurement) {
    auto result = start(c, measurement.name);
    result.by = Judge::guest;
    auto const* claimed = claim(c, measurement.name);
    if (!claimed) {
        result.verdict = Verdict::skip;
        result.detail = "vf-guest did not measure it";
        result.remedy = "use vf-guest of the host's version";
        return result;
    }
    bool const ended = claimed->verdict == Verdict::pass || claimed->verdict == Verdict::fail ||
                       claimed->verdict == Verdict::not_applicable;
    result.verdict = ended ? claimed->verdict : Verdict::skip;
    result.detail = printable(claimed->detail, guest_text_max);
    result.remedy = printable(claimed->remedy, guest_text_max);
    auto const samples = result.figures.find("samples");
    if (!is_answered(measurement.kind) || samples == result.figures.end()) return result;
    auto const answers = streamed(c, measurement.kind).messages;
    if (samples->second > static_cast<double>(answers))
        refute(
            result,
            fmt::format("the guest reports {} answers, the host sent {}", samples->second, answers),
            cheated);
    return result;
}

// The host judges what it read from the VM's memory, and that the memory kept what only the host
// knows; the VM judges what it found in its own memory.
void judge_transfer(Case const& c, StreamKind kind, TestResult& result) {
    auto const transferred = streamed(c, kind);
    if (result.verdict != Verdict::pass && result.verdict != Verdict::fail) return;
    if (!transferred.error.empty())
        return refute(result, "the host had to stop: " + transferred.error,
                      "check the VM's kernel log for its NIC and its memory: dmesg");
    result.mismatches = transferred.read.mismatches;
    if (transferred.read.mismatches != 0)
        return refute(result,
                      fmt::format("{} of {} bytes that the host read from the VM's memory differ: "
                                  "{}",
                                  transferred.read.mismatches, transferred.read.bytes_checked,
                                  transferred.read.detail),
                      "verify again; if bytes differ again, suspect memory, IOMMU or NIC");
    auto const orders = result.figures.find("orders");
    if (orders != result.figures.end() &&
        orders->second > static_cast<double>(transferred.messages))
        return refute(result,
                      fmt::format("the guest reports {} orders, the host carried out {}",
                                  orders->second, transferred.messages),
                      cheated);
    if (result.verdict == Verdict::pass && transferred.bytes_kept == 0)
        refute(result, "the host read back none of the bytes that only it knows", cheated);
}

// The profile's measurements, and any others that were requested in the VM.
void judge_all_figures(Case const& c, Verification& verification) {
    auto path = c.facts.path;
    path.software |= c.report.facts.contains("rdma_software");
    for (auto const& each : all_measurements()) {
        if (each.since > c.permit.profile && !claim(c, each.name)) continue;
        auto& test = verification.tests.emplace_back(judge_figures(c, each));
        if (is_transfer(each.kind)) judge_transfer(c, each.kind, test);
        auto warning = each.flow ? compare_rate(test, *each.flow, path) : std::nullopt;
        if (warning) verification.warnings.push_back(std::move(*warning));
    }
}

void sum_up(Verification& verification, SessionPermit const& permit) {
    for (auto const& test : verification.tests) {
        if (test.verdict != Verdict::fail) continue;
        verification.verdict = Verdict::fail;
        verification.detail = fmt::format("{}: {}", test.name, test.detail);
        verification.remedy = test.remedy;
        return;
    }
    verification.verdict = Verdict::pass;
    if (permit.rdma != RdmaMode::none) return;
    verification.verdict = Verdict::not_applicable;
    verification.detail = "the network has rdma: none; only reachability and path MTU were tested";
    verification.remedy = "set rdma: auto or rxe on the network to have RDMA proved";
}

// Losses in the VM are the guest's claim: made printable, and no more than data.
std::vector<Loss> losses_of(Case const& c) {
    auto losses = explain_losses(c.facts.lost, Judge::host);
    auto counters = c.report.counters;
    for (auto& counter : counters) {
        counter.device = printable(counter.device, figure_name_max);
        counter.name = printable(counter.name, figure_name_max);
    }
    std::ranges::move(explain_losses(counters, Judge::guest), std::back_inserter(losses));
    return losses;
}

// Sorts the surest cause first. A failure names it.
void add_losses(Verification& verification, Case const& c) {
    verification.losses = losses_of(c);
    std::ranges::sort(verification.losses, {}, [](Loss const& loss) {
        return std::tie(loss.counter.source, loss.side, loss.counter.device, loss.counter.name);
    });
    if (verification.verdict != Verdict::fail || verification.losses.empty()) return;
    auto const& first = verification.losses.front();
    verification.detail += "; " + first.detail;
    // Unlike the others, tc drops nothing except what it was configured to drop.
    if (first.counter.source == CounterSource::qdisc) verification.remedy = first.remedy;
}

// Both ends must send in the network's traffic class; otherwise the run tested another one.
void judge_dscp(Verification& verification, Case const& c) {
    if (!c.permit.dscp) return;
    verification.dscp = c.facts.dscp;
    auto const expected = std::to_string(*c.permit.dscp);
    auto const counters = c.report.facts.find("dscp");
    if (c.facts.dscp != *c.permit.dscp)
        verification.warnings.push_back(
            {"",
             fmt::format("the host's queue pair sent with DSCP {}, but the network's is {}",
                         c.facts.dscp, expected),
             "check for a newer driver of the host's RDMA device"});
    if (counters == c.report.facts.end() || counters->second != expected)
        verification.warnings.push_back(
            {"",
             fmt::format("the VM's queue pair sent with DSCP {}, but the network's is {}",
                         counters == c.report.facts.end()
                             ? "0 or an unreported one"
                             : printable(counters->second, figure_name_max),
                         expected),
             "use vf-guest of the host's version"});
}

Verification blank(SessionPermit const& permit) {
    Verification verification;
    verification.run = permit.run;
    verification.attachment = permit.attachment;
    verification.vf_guid = permit.vf_guid;
    if (!permit.vf_guid) verification.vf_mac = permit.vf_mac;
    verification.path = permit.path;
    return verification;
}

Verification failed(Verification verification, std::string detail, std::string remedy) {
    verification.verdict = Verdict::fail;
    verification.detail = std::move(detail);
    verification.remedy = std::move(remedy);
    return verification;
}

}  // namespace

Verification judge(SessionPermit const& permit, SessionFacts const& facts,
                   GuestReport const& report) {
    auto verification = blank(permit);
    if (!facts.peer_gid.empty()) verification.peer_gid = facts.peer_gid;
    if (report.nonce != permit.nonce)
        return failed(std::move(verification), "the report does not carry this run's nonce",
                      cheated);
    Case const c{permit, facts, report};
    if (auto partition = judge_partition(permit, facts, report))
        verification.tests.push_back(std::move(*partition));
    judge_proofs(c, verification);
    if (permit.rdma != RdmaMode::none) {
        judge_all_figures(c, verification);
        judge_dscp(verification, c);
    }
    sum_up(verification, permit);
    add_losses(verification, c);
    return verification;
}

Verification judge_error(SessionPermit const& permit, GuestReport const& report) {
    auto detail = "the guest could not run the tests: " + printable(report.error, guest_text_max);
    auto const missing = missing_partition(permit, report);
    if (missing) detail += "; " + missing->detail;
    return failed(
        blank(permit), std::move(detail),
        missing ? missing->remedy : "follow vf-guest's message in the VM, then verify again");
}

Verification judge_refusal(SessionPermit const& permit, Error const& error) {
    return failed(blank(permit), "the host could not open a session: " + detail_with_causes(error),
                  error.remedy);
}

}  // namespace vfmgr::verify
