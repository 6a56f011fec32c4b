// SPDX-License-Identifier: Apache-2.0
#include "guest-tools/cli/verify.hpp"

#include <fmt/format.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <mutex>
#include <nlohmann/json.hpp>

#include "guest-tools/cli/report.hpp"
#include "guest-tools/net/configure.hpp"
#include "guest-tools/net/find_vf.hpp"
#include "guest-tools/net/resident.hpp"
#include "guest-tools/net/run_tests.hpp"

namespace vfmgr::guest::command {
namespace {

// Prefixes the lines of several verifications at once with `who`. Each line is one write, so lines
// are never mixed.
verify::GuestSession::OnTest on_test(Options const& options, std::string const& who) {
    bool const live = options.output == Output::text && ::isatty(STDERR_FILENO) == 1;
    if (!live) return {};
    return [prefix = options.at_once ? who + "  " : ""](TestResult const& test) {
        warn_text(fmt::format("  {}{}: {}\n", prefix, test.name, enum_name(test.verdict)));
    };
}

// Tests that are named take the place of a profile's: they run after the proofs.
Profile profile_of(verify::Selection const& selection) {
    if (!selection.tests.empty()) return Profile::quick;
    return selection.profile.value_or(Profile::default_);
}

// `configuring` is held while a netdev is configured: those of other VFs wait for their turn.
Result<VfReport> verify_one(Options const& options, HostClient& host, std::mutex& configuring,
                            std::string const& attachment,
                            std::vector<verify::Measurement> const& measured,
                            std::function<void()> const& ready) {
    VFMGR_TRY(auto const selection, host.start_run(attachment, {profile_of(options.selection)}));
    auto plane = guest_plane(host, selection);
    auto const ifname = [&] {
        std::lock_guard const lock(configuring);
        return ready_netdev(StateFolder(options.state_folder), selection);
    }();
    if (!ifname) {
        VfReport failed;
        VFMGR_TRY(failed.verification, plane.cannot(ifname.error()));
        return failed;
    }
    plane.at_once = options.at_once;
    plane.ready = ready;
    return run_tests(plane, {selection, *ifname}, measured, on_test(options, attachment));
}

Result<ServedTest> served_test(Options const& options) {
    auto const place = parse_host_port(options.served.responder, responder_tls_port);
    if (!place)
        return fail(Problem::invalid_request,
                    fmt::format("'{}' is not HOST:PORT", options.served.responder),
                    "name the responder as vf-guest serve printed it");
    ServedTest test;
    test.responder = {*place, options.served.fingerprint, {}};
    VFMGR_TRY(test.responder.token, serve::read_token_file(options.served.token_file));
    if (!options.served.address.empty()) {
        VFMGR_TRY(test.address, IpAddress::parse(options.served.address));
    }
    test.profile = profile_of(options.selection);
    return test;
}

// The outcome of several verifications.
struct Outcome {
    std::vector<VfReport> reports;
    int worst = 0;  // of vf-guest's exit statuses
};

// A report that could not be kept is reported, but is no failure of the VF.
void take(Options const& options, VfReport const& report, Outcome& outcome) {
    outcome.worst = std::max(outcome.worst, exit_code(report));
    if (options.output == Output::text) print_text(describe(report, options.figures));
    if (auto const kept = records_of(options).reports.save(report); !kept)
        print_error(kept.error());
    outcome.reports.push_back(report);
}

int finish(Options const& options, Outcome outcome) {
    std::ranges::sort(outcome.reports, {},
                      [](VfReport const& each) { return each.verification.attachment; });
    if (options.output == Output::json) print_json(nlohmann::json(outcome.reports));
    auto const written = write_metrics(records_of(options));
    return written ? outcome.worst : std::max(outcome.worst, print_error(written.error()));
}

int verify_against_served(Options const& options,
                          std::vector<verify::Measurement> const& measured) {
    auto const test = served_test(options);
    if (!test) return print_error(test.error());
    auto const report = verify_served(*test, measured, on_test(options, {}));
    Outcome outcome;
    if (report)
        take(options, *report, outcome);
    else
        outcome.worst = print_error(report.error());
    return finish(options, std::move(outcome));
}

Outcome verify_attachments(Options const& options, HostEnds& host,
                           std::vector<std::string> const& attachments,
                           std::vector<verify::Measurement> const& measured) {
    std::mutex configuring;
    std::vector<OneVerification> all;
    for (auto const& attachment : attachments)
        all.push_back({attachment,
                       [&, own = host.of(attachment)](std::function<void()> const& ready) mutable {
                           return verify_one(options, own, configuring, attachment, measured,
                                             ready);
                       }});
    Outcome outcome;
    auto const order = options.at_once ? Order::at_once : Order::one_by_one;
    verify_all(all, order, [&](std::string const& attachment, Result<VfReport> report) {
        if (report) return take(options, *report, outcome);
        report.error().detail = fmt::format("attachment {}: {}", attachment, report.error().detail);
        outcome.worst = std::max(outcome.worst, print_error(report.error()));
    });
    return outcome;
}

}  // namespace

HostEnds host_of(Options const& options) {
    return reach_host(
        options.host, options.enrolments, set_up_in(StateFolder(options.state_folder)),
        [](std::string const& attachment, Result<void> done) {
            if (done) return;
            done.error().detail = fmt::format("attachment {}: {}", attachment, done.error().detail);
            print_error(done.error());
        });
}

int run_verify(Options const& options) {
    auto const measured = verify::select_tests(own_tests(), options.selection);
    if (!measured) return print_error(measured.error());
    if (!options.served.responder.empty()) return verify_against_served(options, *measured);
    auto host = host_of(options);
    auto const config = host.config(std::chrono::seconds(0), 0);
    if (!config) return print_error(config.error());
    if (auto const cleared = records_of(options).reports.keep_only(config->attachments); !cleared)
        print_error(cleared.error());
    std::vector<std::string> chosen;
    for (auto const& attachment : config->attachments)
        if (options.attachment.empty() || options.attachment == attachment.attachment)
            chosen.push_back(attachment.attachment);
    int const code = finish(options, verify_attachments(options, host, chosen, *measured));
    if (!chosen.empty()) return code;
    return print_error({Problem::not_found, "the host has attached no such VF to this VM",
                        "attach one on the host: vfctl attach"});
}

Result<FileDescriptor> stop_signals() {
    sigset_t signals{};
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
    FileDescriptor made(::signalfd(-1, &signals, SFD_CLOEXEC));
    if (made) return made;
    return fail(Problem::limit_exceeded, "the descriptor for signals can't be created",
                "raise the limit of open files");
}

}  // namespace vfmgr::guest::command
