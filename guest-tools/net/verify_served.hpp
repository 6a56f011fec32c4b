// SPDX-License-Identifier: Apache-2.0
// A verification against a responder that another machine serves, with no vfmgrd on either side:
// run and nonce are created here, and nothing is configured. Blocking; one thread.
#pragma once

#include "api/types/responder.hpp"
#include "guest-tools/net/run_tests.hpp"

namespace vfmgr::guest {

struct ServedTest {
    ResponderTarget responder;
    std::optional<IpAddress> address;  // of this machine; absent: the one towards the responder
    Profile profile = Profile::default_;
};

// Returns the responder's verdict, in which the path is unknown.
[[nodiscard]] Result<VfReport> verify_served(ServedTest const& test,
                                             std::vector<verify::Measurement> measured,
                                             verify::GuestSession::OnTest on_test = {});

}  // namespace vfmgr::guest
