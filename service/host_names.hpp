// SPDX-License-Identifier: Apache-2.0
// The names and addresses by which clients may reach this host, for the certificate that the daemon
// makes for itself. No name server is asked. Free functions; any thread.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "api/types/addresses.hpp"

namespace vfmgr {

// Each once: first the host's name, then longer ones that /etc/hosts has for it, localhost and the
// loopback addresses, the addresses of interfaces that are up, apart from those of one link,
// those that come and go (temporary IPv6 addresses), and `besides`.
[[nodiscard]] std::vector<std::string> host_names(std::set<IpAddress> const& besides);

// Returns the names that begin with `host` and a dot, on those lines of /etc/hosts that have `host`
// as a name: another machine's line does not.
[[nodiscard]] std::set<std::string> full_names(std::string_view hosts, std::string const& host);

// Returns the addresses in /proc/net/if_inet6 that the kernel replaces by itself.
[[nodiscard]] std::set<IpAddress> temporary_addresses(std::string_view if_inet6);

}  // namespace vfmgr
