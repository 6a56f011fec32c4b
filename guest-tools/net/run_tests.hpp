// SPDX-License-Identifier: Apache-2.0
// One verification from beginning to end: session, tests, report and verdict. Blocking, up to the
// offer's deadline; one thread.
#pragma once

#include "guest-tools/net/host_client.hpp"
#include "guest-tools/net/vf_report.hpp"
#include "guest-tools/verify/session.hpp"

namespace vfmgr::guest {

// vf-guest runs interop::ping_by_cm() on the arguments after this word.
inline constexpr char const* cm_ping_command = "cm-ping";

// The other end of the tests: the host's guest plane, or a served responder.
struct TestHost {
    std::function<Result<OrTurn<SessionOffer>>(SessionRequest const&)> open;
    std::function<verify::StreamHost(std::string const& session)> streams;
    std::function<Result<Verification>(std::string const& session, GuestReport const&)> report;
    // Reports that the tests can't even start.
    std::function<Result<Verification>(Error const&)> cannot;
    // Other tests of this VM wait for this one to begin, so it must not wait for them.
    bool at_once = false;
};

// Returns the TestHost of this VM's host. Reports also what could not be tested at all to the host,
// and returns its verdict. `host` must outlive it; the attachment has a run.
[[nodiscard]] TestHost guest_plane(HostClient& host, GuestAttachment const& attachment);

// The subject's attachment has a run. Fails only when the other end can't be queried or refuses.
// Runs `measured` after the proofs; calls `on_test` with each test as it ends.
[[nodiscard]] Result<VfReport> run_tests(TestHost const& host, verify::Subject const& subject,
                                         std::vector<verify::Measurement> measured,
                                         verify::GuestSession::OnTest on_test = {});

}  // namespace vfmgr::guest
