// SPDX-License-Identifier: Apache-2.0
// libvirt's last error as one of our Errors. libvirt keeps one for each thread: read it at once, in
// the thread of the call.
#pragma once

#include <libvirt/virterror.h>

#include <string>
#include <string_view>

#include "api/types/problem.hpp"

namespace vfmgr {

// `what` is the refused request: "libvirt does not plug 0000:01:10.0 into VM vm1". The detail is
// `what`, a colon and libvirt's message. A dead connection is `unavailable`, a missing domain
// `not_found`, anything else `hypervisor_refused`; the remedy comes from the message if it is a
// known one.
[[nodiscard]] Error libvirt_error(std::string call, std::string_view what);

// The name of a virErrorNumber as its header spells it; "VIR_ERR_<n>" for an unknown one.
[[nodiscard]] std::string libvirt_code_name(int code);

// True when the first cause of `error` has this code name.
[[nodiscard]] bool is_libvirt_code(Error const& error, std::string_view code_name);

// True when virtqemud reports that it has not reached another of libvirt's modular daemons, because
// that one's socket does not exist (LIBVIRT.md#monolithic-and-modular).
[[nodiscard]] bool lacks_other_daemon(virError const& error);

}  // namespace vfmgr
