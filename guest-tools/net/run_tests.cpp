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

Result<Verification> run_tests(HostClient& host, verify::Subject const& subject,
                               std::vector<verify::Measurement> measured,
                               verify::GuestSession::OnTest on_test) {
    auto const& attachment = subject.attachment;
    auto const cannot = [&](Error const& error) {
        return host.report_error(attachment.run.value_or(""), attachment.nonce, error);
    };
    if (auto const sound = check_address(attachment, subject.ifname); !sound)
        return cannot(sound.error());
    auto session = verify::GuestSession::prepare(subject);
    if (!session) return cannot(session.error());
    VFMGR_TRY(auto const offer, host.open_session((*session)->request()));
    verify::Measuring const measuring{std::move(measured), streams_of(host, offer.session)};
    auto report = (*session)->run(offer, measuring, std::move(on_test));
    report.facts["vf_guest"] = VFMGR_VERSION;
    return host.report(offer.session, report);
}

}  // namespace vfmgr::guest
