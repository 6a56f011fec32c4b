// SPDX-License-Identifier: Apache-2.0
// Connects a stream socket within a deadline. Uses plain sockets, no Asio. Blocks; any thread.
#pragma once

#include <string>

#include "api/http/http.hpp"
#include "api/os/descriptor.hpp"
#include "api/types/time.hpp"

namespace vfmgr::http {

// Returns a non-blocking, close-on-exec socket. Errors: unavailable, timed_out, forbidden (the
// socket's permissions).
[[nodiscard]] Result<FileDescriptor> connect_to(Target const& target, Deadline deadline);

// Returns "/run/vfmgr/vfmgr.sock", "https://host:8470" or "vsock 2:8471", for an error's detail.
[[nodiscard]] std::string describe(Target const& target);
[[nodiscard]] std::string remedy_of(Target const& target);
// Returns the Host header.
[[nodiscard]] std::string authority(Target const& target);

}  // namespace vfmgr::http
