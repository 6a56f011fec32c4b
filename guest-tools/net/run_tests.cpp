// SPDX-License-Identifier: Apache-2.0
#include "guest-tools/net/run_tests.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <latch>
#include <mutex>
#include <set>
#include <system_error>
#include <thread>

#include "api/os/random.hpp"
#include "guest-tools/gpu/gpudirect.hpp"
#include "guest-tools/net/address_check.hpp"
#include "vfmgr/proof/interop/cm_pinger.hpp"
#include "vfmgr/proof/serve/local_end.hpp"
#include "vfmgr/proof/serve/remote_responder.hpp"
#include "vfmgr/proof/turns.hpp"

namespace vfmgr::guest {
namespace {

using Steady = std::chrono::steady_clock;
// Longer than a busy host needs for the sessions ahead; after that, this guest reports an error.
constexpr std::chrono::minutes session_patience{5};

// `Host` is the host, or a served responder.
template <class Host>
verify::StreamHost streams_of(Host& host, std::string const& session) {
    return {[&host, session](StreamRequest const& request) {
                return verify::await_turn<StreamOffer>(
                    [&] { return host.open_stream(session, request); },
                    verify::wait_until(Steady::now() + verify::stream_patience));
            },
            // A stream that can't be closed now ends with the session.
            [&host, session](std::string const& stream) {
                static_cast<void>(host.close_stream(session, stream));
            }};
}

Result<VfReport> with_verdict(VfReport done, Result<Verification> verification) {
    VFMGR_TRY(done.verification, std::move(verification));
    return done;
}

}  // namespace

TestHost guest_plane(HostClient& host, GuestAttachment const& attachment) {
    return {.open = [&host](SessionRequest const& request) { return host.open_session(request); },
            .streams = [&host](std::string const& session) { return streams_of(host, session); },
            .report = [&host](std::string const& session,
                              GuestReport const& report) { return host.report(session, report); },
            .cannot = [&host, attachment](
                          Error const& error) { return host.report_error(attachment, error); }};
}

std::vector<verify::Measurement> own_tests() {
    verify::OwnRuns own;
    own.cm_ping = verify::cm_ping_by(interop::cm_pinger({"/proc/self/exe", cm_ping_command}));
    own.gpudirect = [](verify::Measurement const& what, verify::TestBed const& bed) {
        return gpu::gpudirect(bed.host, bed.endpoint, what.load.window, bed.deadline);
    };
    return verify::all_measurements(own);
}

Result<VfReport> run_tests(TestHost const& host, verify::Subject const& subject,
                           std::vector<verify::Measurement> const& measured,
                           verify::GuestSession::OnTest on_test) {
    VfReport done;
    done.ifname = subject.ifname;
    if (auto const sound = check_address(subject.attachment, subject.ifname); !sound)
        return with_verdict(std::move(done), host.cannot(sound.error()));
    auto session = verify::GuestSession::prepare(subject);
    if (!session) return with_verdict(std::move(done), host.cannot(session.error()));
    auto waiting = verify::wait_until(Steady::now() + session_patience);
    waiting.for_own = !host.at_once;
    bool has_turn = false;
    auto const opened = verify::await_turn<SessionOffer>(
        [&] {
            auto answer = host.open((*session)->request());
            has_turn = answer && std::holds_alternative<Turn>(*answer);
            return answer;
        },
        waiting);
    // The host does not know that this guest gives up, so report it.
    if (!opened && has_turn) return with_verdict(std::move(done), host.cannot(opened.error()));
    VFMGR_TRY(auto const offer, opened);
    if (host.ready) host.ready();
    auto report = (*session)->run(offer, measured, host.streams(offer.session), std::move(on_test));
    done.rdma_device = report.facts["rdma_device"];
    report.facts["vf_guest"] = VFMGR_VERSION;
    return with_verdict(std::move(done), host.report(offer.session, report));
}

namespace {

// An uncaught exception in a thread ends the whole program, and loses the others' verdicts.
Result<VfReport> run_guarded(OneVerification const& one, std::function<void()> const& ready) {
    try {
        return one.run(ready);
    } catch (std::exception const& error) {
        return fail(Problem::internal, error.what());
    }
}

Error no_thread(std::system_error const& error) {
    return {Problem::limit_exceeded,
            fmt::format("no thread can be started to verify it: {}", error.what()),
            "raise the limit of tasks, or verify one after the other"};
}

void verify_at_once(std::vector<OneVerification> const& all, OnEnd const& on_end) {
    // Where verifications that are ready wait for the others.
    std::latch line(static_cast<std::ptrdiff_t>(all.size()));
    std::vector<char> began(all.size());  // set before the line, read after it
    std::mutex one_at_a_time;
    auto const end = [&](OneVerification const& one, Result<VfReport> report) {
        std::lock_guard const lock(one_at_a_time);
        on_end(one.attachment, std::move(report));
    };
    auto const verify = [&](std::size_t own) {
        auto report = run_guarded(all[own], [&] {
            began[own] = 1;
            line.arrive_and_wait();
        });
        if (began[own] == 0) line.count_down();
        std::set<std::string> others;
        for (std::size_t n = 0; began[own] != 0 && n < all.size(); ++n)
            if (began[n] != 0 && n != own) others.insert(all[n].attachment);
        if (report) report->at_once_with.assign(others.begin(), others.end());
        end(all[own], std::move(report));
    };
    std::vector<std::jthread> threads;
    threads.reserve(all.size());
    for (std::size_t n = 0; n < all.size(); ++n) {
        try {
            threads.emplace_back(verify, n);
        } catch (std::system_error const& error) {
            line.count_down();  // otherwise the others wait for it
            end(all[n], fail(no_thread(error)));
        }
    }
}

}  // namespace

void verify_all(std::vector<OneVerification> const& all, Order order, OnEnd const& on_end) {
    if (order == Order::at_once) return verify_at_once(all, on_end);
    for (auto const& one : all) on_end(one.attachment, one.run([] {}));
}

namespace {

Result<serve::LocalEnd> own_end(ServedTest const& test, ResponderInfo const& info) {
    if (test.address) return serve::find_local_end(*test.address);
    VFMGR_TRY(auto const address, serve::address_towards(info.address));
    return serve::find_local_end(address);
}

verify::Subject subject_of(serve::LocalEnd const& end, ServedTest const& test,
                           ResponderInfo const& info) {
    verify::Subject subject;
    subject.ifname = end.netdev.name;
    auto& attachment = subject.attachment;
    // One address has one session: the next test replaces one that was cut short.
    attachment.attachment = to_string(end.address.address);
    attachment.guid = end.netdev.port_guid;
    if (!attachment.guid) attachment.mac = end.netdev.mac.value_or(MacAddress{});
    attachment.address = end.address.address;
    attachment.prefix_length = end.address.prefix_length;
    attachment.mtu = end.netdev.mtu;
    attachment.responder = info.address;
    attachment.echo_port = info.echo_port;
    attachment.run = random_hex(8);
    attachment.nonce = random_hex(16);
    attachment.profile = test.profile;
    return subject;
}

verify::SessionPermit permit_of(GuestAttachment const& attachment) {
    verify::SessionPermit permit;
    permit.attachment = attachment.attachment;
    permit.run = *attachment.run;
    permit.nonce = attachment.nonce;
    permit.vf_mac = attachment.mac.value_or(MacAddress{});
    permit.vf_guid = attachment.guid;
    permit.peer_address = attachment.address;
    permit.mtu = attachment.mtu;
    permit.rdma = attachment.rdma;
    permit.dscp = attachment.dscp;
    permit.path.reset();
    permit.profile = attachment.profile;
    return permit;
}

}  // namespace

Result<VfReport> verify_served(ServedTest const& test,
                               std::vector<verify::Measurement> const& measured,
                               verify::GuestSession::OnTest on_test) {
    auto const started_at = system_clock().now();
    serve::RemoteResponder const remote(test.responder);
    VFMGR_TRY(auto const info, remote.info());
    VFMGR_TRY(auto const end, own_end(test, info));
    auto const subject = subject_of(end, test, info);
    auto const permit = permit_of(subject.attachment);
    TestHost const host{
        .open = [&](SessionRequest const& request) { return remote.open(permit, request); },
        .streams = [&](std::string const& session) { return streams_of(remote, session); },
        .report = [&](std::string const& session,
                      GuestReport const& report) { return remote.close(session, permit, report); },
        .cannot = [](Error const& error) -> Result<Verification> { return fail(error); }};
    VFMGR_TRY(auto done, run_tests(host, subject, measured, std::move(on_test)));
    done.verification.started_at = started_at;
    done.verification.finished_at = system_clock().now();
    return done;
}

}  // namespace vfmgr::guest
