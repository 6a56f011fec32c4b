// SPDX-License-Identifier: Apache-2.0
#include "guest-tools/net/run_tests.hpp"

namespace vfmgr::guest {

Result<Verification> run_tests(HostClient& host, verify::Subject const& subject) {
    auto const& attachment = subject.attachment;
    auto session = verify::GuestSession::prepare(subject);
    if (!session)
        return host.report_error(attachment.run.value_or(""), attachment.nonce, session.error());
    VFMGR_TRY(auto const offer, host.open_session((*session)->request()));
    auto report = (*session)->run(offer);
    report.facts["vf_guest"] = VFMGR_VERSION;
    return host.report(offer.session, report);
}

}  // namespace vfmgr::guest
