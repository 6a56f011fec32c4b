// SPDX-License-Identifier: Apache-2.0
#include "guest-tools/net/run_tests.hpp"

#include "guest-tools/gpu/gpu_transfer.hpp"
#include "guest-tools/interop/cm_pinger.hpp"
#include "guest-tools/net/address_check.hpp"
#include "guest-tools/verify/await_turn.hpp"

namespace vfmgr::guest {
namespace {

using Steady = std::chrono::steady_clock;
// Longer than a busy host needs for the sessions ahead; after that, this guest reports an error.
constexpr std::chrono::minutes session_patience{5};

verify::StreamHost streams_of(HostClient& host, std::string const& session) {
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

// Keeps the turn in `last` if the host's last answer was one.
Result<OrTurn<SessionOffer>> remember_turn(Result<OrTurn<SessionOffer>> answer,
                                           std::optional<Turn>& last) {
    last.reset();
    if (answer && std::holds_alternative<Turn>(*answer)) last = std::get<Turn>(*answer);
    return answer;
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
            .cannot = [&host, run = attachment.run.value_or(""), nonce = attachment.nonce](
                          Error const& error) { return host.report_error(run, nonce, error); }};
}

Result<VfReport> run_tests(TestHost const& host, verify::Subject const& subject,
                           std::vector<verify::Measurement> measured,
                           verify::GuestSession::OnTest on_test) {
    VfReport done;
    done.ifname = subject.ifname;
    if (auto const sound = check_address(subject.attachment, subject.ifname); !sound)
        return with_verdict(std::move(done), host.cannot(sound.error()));
    auto session = verify::GuestSession::prepare(subject);
    if (!session) return with_verdict(std::move(done), host.cannot(session.error()));
    auto waiting = verify::wait_until(Steady::now() + session_patience);
    waiting.for_own = !host.at_once;
    std::optional<Turn> last;
    auto const opened = verify::await_turn<SessionOffer>(
        [&] { return remember_turn(host.open((*session)->request()), last); }, waiting);
    // The host does not know that this guest gives up, so report it.
    if (!opened && last) return with_verdict(std::move(done), host.cannot(opened.error()));
    VFMGR_TRY(auto const offer, opened);
    verify::Measuring const measuring{std::move(measured), host.streams(offer.session),
                                      interop::cm_pinger({"/proc/self/exe", cm_ping_command}),
                                      gpu::gpudirect};
    auto report = (*session)->run(offer, measuring, std::move(on_test));
    done.rdma_device = report.facts["rdma_device"];
    report.facts["vf_guest"] = VFMGR_VERSION;
    return with_verdict(std::move(done), host.report(offer.session, report));
}

}  // namespace vfmgr::guest
