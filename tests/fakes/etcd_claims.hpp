// SPDX-License-Identifier: Apache-2.0
// What FakeEtcd claims of etcd, as a program that runs on either: by the unit tests on the fake, by
// tests/fleet on etcd itself. No ownership; one thread.
#pragma once

#include <string>
#include <vector>

#include "service/fleet/etcd/etcd.hpp"

namespace vfmgr::fleet {

// Returns what is not so; empty: all claims hold. Uses keys below "claims/", and takes up to
// `patience` for what is to happen by itself.
[[nodiscard]] std::vector<std::string> broken_claims(Etcd& etcd, Clock const& clock,
                                                     std::chrono::seconds patience);

}  // namespace vfmgr::fleet
