// SPDX-License-Identifier: Apache-2.0
// One verification from beginning to end: session, tests, report, the host's verdict. Blocking, up
// to the offer's deadline; one thread.
#pragma once

#include "guest-tools/net/host_client.hpp"
#include "guest-tools/verify/session.hpp"

namespace vfmgr::guest {

// The subject's attachment has a run. When the tests can't even start, the host is told why and
// its verdict comes back; an Error only when the host can't be asked or refuses.
// `measured` after the proofs; `on_test` is told of each test as it ends.
[[nodiscard]] Result<Verification> run_tests(HostClient& host, verify::Subject const& subject,
                                             std::vector<verify::Measurement> measured,
                                             verify::GuestSession::OnTest on_test = {});

}  // namespace vfmgr::guest
