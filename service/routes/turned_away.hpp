// SPDX-License-Identifier: Apache-2.0
// Reports connections that an API turns away before it reads a request. Runs on the io thread.
#pragma once

#include <functional>

#include "service/routes/gate.hpp"

namespace vfmgr {

// Logs connections that got no place, or whose client certificate was refused: at most three lines
// per peer, then one every ten seconds. The audit counts the latter as failed authentications.
[[nodiscard]] std::function<void(http::Peer const&, Error const&)> report_turned_away(Audit audit,
                                                                                      Clock& clock);

}  // namespace vfmgr
