// SPDX-License-Identifier: Apache-2.0
#include "guest-tools/net/run_tests.hpp"

#include "guest-tools/net/address_check.hpp"

namespace vfmgr::guest {
namespace {

verify::StreamHost streams_of(HostClient& host, std::string const& session) {
    return {[&host, session](StreamRequest const& request) {
                return host.open_stream(session, request);
            },
            // What could not be ended now ends with the session.
            [&host, session](std::string const& stream) {
                static_cast<void>(host.close_stream(session, stream));
            }};
}

}  // namespace

Result<Verification> run_tests(TestHost const& host, verify::Subject const& subject,
                               std::vector<verify::Measurement> measured,
                               verify::GuestSession::OnTest on_test) {
    if (auto const sound = check_address(subject.attachment, subject.ifname); !sound)
        return host.cannot(sound.error());
    auto session = verify::GuestSession::prepare(subject);
    if (!session) return host.cannot(session.error());
    VFMGR_TRY(auto const offer, host.open((*session)->request()));
    verify::Measuring const measuring{std::move(measured), host.streams(offer.session)};
    auto report = (*session)->run(offer, measuring, std::move(on_test));
    report.facts["vf_guest"] = VFMGR_VERSION;
    return host.report(offer.session, report);
}

Result<Verification> run_tests(HostClient& host, verify::Subject const& subject,
                               std::vector<verify::Measurement> measured,
                               verify::GuestSession::OnTest on_test) {
    auto const& attachment = subject.attachment;
    TestHost const plane{
        .open = [&](SessionRequest const& request) { return host.open_session(request); },
        .streams = [&](std::string const& session) { return streams_of(host, session); },
        .report = [&](std::string const& session,
                      GuestReport const& report) { return host.report(session, report); },
        .cannot =
            [&](Error const& error) {
                return host.report_error(attachment.run.value_or(""), attachment.nonce, error);
            }};
    return run_tests(plane, subject, std::move(measured), std::move(on_test));
}

}  // namespace vfmgr::guest
